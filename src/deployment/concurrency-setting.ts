/**
 * How many tasks of a concurrency key may run at once: a list in the file, or pairs on one line. Throws ConfigError with
 * a sentence for the operator, as all readers do.
 */
import { type KeyLimit, MAX_PERMIT_LIMIT } from '../kernel/permits.js';
import { ConfigError, readList, readText, readWhole } from './option-values.js';

const readLimit = readWhole(1, MAX_PERMIT_LIMIT);

/** `[{key: "tenant-*", limit: 4}]`, or `tenant-*=4,batch=2`. */
export function readKeyLimits(written: unknown): readonly KeyLimit[] {
  if (!Array.isArray(written)) {
    return readList(written).map((pair) => {
      const [pattern, limit] = pairOf(pair, 'tenant-*=4');
      return { pattern, limit: labelled(pair, () => readLimit(limit)) };
    });
  }
  return written.map((item: unknown, index) =>
    labelled(`[${String(index)}]`, () => {
      if (!isMapping(item) || Object.keys(item).some((name) => name !== 'key' && name !== 'limit')) {
        throw new ConfigError('must be a mapping of key and limit');
      }
      return { pattern: readText(item['key']), limit: readLimit(item['limit']) };
    }),
  );
}

/** A key may hold an equals sign: the last one counts. */
function pairOf(pair: string, example: string): readonly [string, string] {
  const at = pair.lastIndexOf('=');
  if (at < 1) throw new ConfigError(`must be pairs, ${example} for example`);
  return [pair.slice(0, at), pair.slice(at + 1)];
}

function labelled<Value>(label: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw error instanceof ConfigError ? new ConfigError(`${label}: ${error.message}`) : error;
  }
}

function isMapping(written: unknown): written is Readonly<Record<string, unknown>> {
  return typeof written === 'object' && written !== null && !Array.isArray(written);
}
