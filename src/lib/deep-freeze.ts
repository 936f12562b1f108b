/**
 * Values that are handed out and kept at once must not be changed by anyone: they are frozen, down to what is frozen
 * already.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}
