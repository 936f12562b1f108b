/**
 * What the memory store hands out is what it holds, so it must not be changed by anyone: values are frozen as they come
 * in, down to what is frozen already.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}
