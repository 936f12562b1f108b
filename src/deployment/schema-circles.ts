/**
 * Circles of a JSON Schema (draft 2020-12): references that lead a check back to where it is without going on to a part
 * of what is checked. Compiling one, or checking args with it, never ends. Owns finding the first of them and naming
 * its places; a schema that refers to itself for a member or an element of the args is no circle. Never fetches: what is
 * not in the document is left to the compiler to refuse.
 */

type Schema = Readonly<Record<string, unknown>>;

/** Where a subschema stands below a keyword: itself, in a list, or under a name. Booleans have nothing in them. */
type Shape = 'one' | 'list' | 'map';

/** They say more about the same value. */
const IN_PLACE: Readonly<Record<string, Shape>> = {
  allOf: 'list',
  anyOf: 'list',
  oneOf: 'list',
  not: 'one',
  if: 'one',
  then: 'one',
  else: 'one',
  dependentSchemas: 'map',
};
/** They speak of a part of the value. */
const OF_A_PART: Readonly<Record<string, Shape>> = {
  properties: 'map',
  patternProperties: 'map',
  additionalProperties: 'one',
  unevaluatedProperties: 'one',
  propertyNames: 'one',
  prefixItems: 'list',
  items: 'one',
  contains: 'one',
  unevaluatedItems: 'one',
};
/** Nothing is checked with them unless they are referred to. */
const KEPT: Readonly<Record<string, Shape>> = { $defs: 'map', definitions: 'map' };
const REFERENCES = ['$ref', '$dynamicRef'] as const;
const ANCHORS = ['$anchor', '$dynamicAnchor'] as const;

/** For a document without an `$id`, so that references can be resolved at all. */
const NOWHERE = 'schema:/';
/** A way round is told up to this many places. */
const MAX_PLACES_TOLD = 8;

/** `#/$defs/a → #/$defs/b → #/$defs/a`; null when there is none that a check can come to. */
export function circleIn(root: Schema): string | null {
  const document = new Document(root);
  /** Behind each of them everything was followed. */
  const done = new Set<Schema>();
  const waiting: Schema[] = [root];
  for (let start = waiting.pop(); start !== undefined; start = waiting.pop()) {
    if (done.has(start)) continue;
    // Depth first with a list of its own: a chain of references is as long as its author likes.
    const way: { readonly schema: Schema; readonly next: Schema[] }[] = [];
    const onWay = new Set<Schema>();
    const enter = (schema: Schema): void => {
      way.push({ schema, next: [...document.inPlaceOf(schema)] });
      onWay.add(schema);
    };
    enter(start);
    for (let step = way.at(-1); step !== undefined; step = way.at(-1)) {
      const next = step.next.pop();
      if (next === undefined) {
        way.pop();
        onWay.delete(step.schema);
        done.add(step.schema);
        waiting.push(...subschemas(step.schema, OF_A_PART));
      } else if (onWay.has(next)) {
        const schemas = way.map(({ schema }) => schema);
        return document.told([...schemas.slice(schemas.indexOf(next)), next]);
      } else if (!done.has(next)) {
        enter(next);
      }
    }
  }
  return null;
}

/** Its schemas with their places, by what they can be referred to. */
class Document {
  private readonly places = new Map<Schema, string>();
  /** What references in it are relative to. */
  private readonly bases = new Map<Schema, string>();
  /** Whole resources by their URI, anchors by that with a fragment. */
  private readonly named = new Map<string, Schema>();

  constructor(root: Schema) {
    const waiting: { readonly schema: Schema; readonly place: string; readonly base: string }[] = [];
    waiting.push({ schema: root, place: '#', base: NOWHERE });
    this.named.set(NOWHERE, root);
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { schema, place } = next;
      const id = schema['$id'];
      const base = typeof id === 'string' ? (resolved(id, next.base)?.uri ?? next.base) : next.base;
      this.places.set(schema, place);
      this.bases.set(schema, base);
      if (typeof id === 'string') this.named.set(base, schema);
      for (const keyword of ANCHORS) {
        const anchor = schema[keyword];
        if (typeof anchor === 'string') this.named.set(`${base}#${anchor}`, schema);
      }
      for (const keywords of [IN_PLACE, OF_A_PART, KEPT]) {
        for (const [inner, under] of subschemaPlaces(schema, keywords)) {
          waiting.push({ schema: inner, place: `${place}/${under}`, base });
        }
      }
    }
  }

  /** What is checked on the same value. */
  *inPlaceOf(schema: Schema): Generator<Schema> {
    for (const keyword of REFERENCES) {
      const reference = schema[keyword];
      const target = typeof reference === 'string' ? this.find(reference, schema) : null;
      if (target !== null) yield target;
    }
    yield* subschemas(schema, IN_PLACE);
  }

  told(way: readonly Schema[]): string {
    const places = way.map((schema) => this.places.get(schema) ?? '?');
    if (places.length <= MAX_PLACES_TOLD) return places.join(' → ');
    return [...places.slice(0, MAX_PLACES_TOLD - 1), '…', ...places.slice(-1)].join(' → ');
  }

  private find(reference: string, from: Schema): Schema | null {
    const target = resolved(reference, this.bases.get(from) ?? NOWHERE);
    if (target === null) return null;
    const { uri, fragment } = target;
    if (fragment !== '' && !fragment.startsWith('/')) return this.named.get(`${uri}#${fragment}`) ?? null;
    let value: unknown = this.named.get(uri);
    for (const token of fragment.split('/').slice(1)) {
      const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
      value = isObject(value) || Array.isArray(value) ? Reflect.get(value, name) : undefined;
    }
    // What stands where no schema is expected has no place of its own, and nothing refers on from it.
    return isObject(value) && this.places.has(value) ? value : null;
  }
}

function resolved(reference: string, base: string): { readonly uri: string; readonly fragment: string } | null {
  try {
    const url = new URL(reference, base);
    const fragment = decodeURIComponent(url.hash.slice(1));
    url.hash = '';
    return { uri: url.href, fragment };
  } catch {
    return null;
  }
}

function* subschemas(schema: Schema, keywords: Readonly<Record<string, Shape>>): Generator<Schema> {
  for (const [inner] of subschemaPlaces(schema, keywords)) yield inner;
}

/** Each with where it stands, as a JSON pointer from its schema. */
function* subschemaPlaces(
  schema: Schema,
  keywords: Readonly<Record<string, Shape>>,
): Generator<readonly [inner: Schema, place: string]> {
  for (const [keyword, shape] of Object.entries(keywords)) {
    const value = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
    if (shape === 'one') {
      if (isObject(value)) yield [value, keyword];
      continue;
    }
    if (shape === 'list' ? !Array.isArray(value) : !isObject(value)) continue;
    for (const [name, inner] of Object.entries(value as object)) {
      const escaped = name.replaceAll('~', '~0').replaceAll('/', '~1');
      if (isObject(inner)) yield [inner, `${keyword}/${escaped}`];
    }
  }
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
