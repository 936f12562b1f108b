/**
 * JSON Schemas of args (draft 2020-12), compiled once at start into the checks that admission calls.
 * A schema is the operator's and as trusted as the rest of the configuration; args are the caller's. So what a caller
 * can make slow is bounded here: patterns run on an engine that is linear in the text, repeated elements are found in
 * one pass, and only the first violation of large args is looked for. Nothing is ever fetched, and args never change.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { RE2JS } from 're2js';
import {
  type ArgsCheck,
  type ArgsProblem,
  type ArgsViolation,
  MAX_ARGS_VIOLATIONS,
} from '../kernel/admission/action-kinds.js';
import { MAX_POINTER_LENGTH, quoted } from '../kernel/admission/json-problem.js';
import { exceedsUtf8Bytes } from '../kernel/admission/text-rules.js';
import { circleIn } from './schema-circles.js';

/** What a schema may weigh as JSON: more is no longer read by anybody, and compiling takes time at every start. */
export const MAX_SCHEMA_BYTES = 1_048_576;
/** Of larger args only the first violation is told: to find all of them costs as many errors as there are elements. */
const MAX_EXHAUSTIVE_ARGS_LENGTH = 16_384;
/** A sentence for a person; a schema may list hundreds of allowed values. */
const MAX_DETAIL_LENGTH = 200;
const DRAFT = /^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;

/** A schema that cannot be used. The message says why, without the place, which whoever reads it knows. */
export class SchemaProblem extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SchemaProblem';
  }
}

/**
 * Throws SchemaProblem for what is no schema, has a keyword that nobody knows, or refers to what is not in it or to
 * itself in a circle.
 */
export function compileArgsSchema(schema: unknown): ArgsCheck {
  const own = plainSchema(schema);
  requireValid(own);
  const circle = circleIn(own);
  if (circle !== null) throw new SchemaProblem(`${circle}: refers to itself without going on into the args`);
  const first = compile(own, false);
  const all = compile(own, true);
  return (argsJson) => {
    const validate = argsJson.length <= MAX_EXHAUSTIVE_ARGS_LENGTH ? all : first;
    return validate(JSON.parse(argsJson)) ? null : problemOf(validate.errors ?? []);
  };
}

/** A copy as JSON has it: no cycles, no shared parts, nothing that is not data. */
function plainSchema(schema: unknown): Readonly<Record<string, unknown>> {
  let text: string | undefined;
  try {
    text = JSON.stringify(schema);
  } catch {
    throw new SchemaProblem('is not JSON');
  }
  if (text === undefined) throw new SchemaProblem('is not JSON');
  if (exceedsUtf8Bytes(text, MAX_SCHEMA_BYTES)) throw new SchemaProblem(`is larger than ${MAX_SCHEMA_BYTES} bytes`);
  const plain: unknown = JSON.parse(text);
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) throw new SchemaProblem('must be an object');
  if ('$schema' in plain && !(typeof plain.$schema === 'string' && DRAFT.test(plain.$schema))) {
    throw new SchemaProblem('$schema: only https://json-schema.org/draft/2020-12/schema is known');
  }
  return { ...plain };
}

let draft: Ajv2020 | null = null;

/** By the draft's own schema, which is compiled once: that takes longer than all the rest. */
function requireValid(schema: object): void {
  draft ??= new Ajv2020({ validateFormats: false, logger: false, code: { regExp: linearRegExp } });
  try {
    void draft.validateSchema(schema, true);
  } catch (error) {
    throw new SchemaProblem(messageOf(error));
  }
}

function messageOf(error: unknown): string {
  if (error instanceof RangeError) return 'is nested, or refers on, too deep to be compiled';
  return error instanceof Error ? error.message : 'cannot be compiled';
}

function compile(schema: object, allErrors: boolean): ValidateFunction {
  const ajv = new Ajv2020({
    allErrors,
    validateSchema: false,
    strict: true,
    // Two things that ordinary schemas do: name a member in one branch and require it in another, and allow null.
    strictRequired: false,
    allowUnionTypes: true,
    // As the draft has it by default: a format is a remark.
    validateFormats: false,
    // `{}` has no member `constructor`, whatever it inherits.
    ownProperties: true,
    logger: false,
    code: { regExp: linearRegExp },
  });
  // The original compares every element with every other.
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must NOT have duplicate items' },
    compile: (wanted: boolean) => (items: readonly unknown[]) => !wanted || areUnique(items),
  });
  let validate: ValidateFunction;
  try {
    validate = ajv.compile(schema);
  } catch (error) {
    throw new SchemaProblem(messageOf(error));
  }
  if ('$async' in validate) throw new SchemaProblem('$async: a check of args has nothing to wait for');
  return validate;
}

/** Args arrive in canonical form, members in order: equal elements have equal texts. */
function areUnique(items: readonly unknown[]): boolean {
  return new Set(items.map((item) => JSON.stringify(item))).size === items.length;
}

/** RE2 instead of backtracking: no pattern takes more than linear time. It has no look-around and no back-references. */
function linearRegExp(pattern: string): { test(text: string): boolean; toString(): string } {
  const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
  // Patterns are told apart by their texts: without one of its own each would be taken for the first.
  return { test: (text) => compiled.test(text), toString: () => pattern };
}
/** How generated code would name it; ajv's type wants it, and code is never written to a file. */
linearRegExp.code = 'linearRegExp';

function problemOf(errors: readonly ErrorObject[]): ArgsProblem {
  const violations: ArgsViolation[] = [];
  const told = new Set<string>();
  for (const error of errors) {
    if (violations.length === MAX_ARGS_VIOLATIONS) break;
    const violation = { pointer: bounded(error.instancePath), detail: detailOf(error) };
    const text = `${violation.pointer}\n${violation.detail}`;
    if (told.has(text)) continue;
    told.add(text);
    violations.push(violation);
  }
  const [first = { pointer: '', detail: 'does not fit the schema of its kind' }] = violations;
  return violations.length > 1 ? { ...first, violations } : first;
}

/** Member names are the caller's: a pointer that is too long names the nearest ancestor. */
function bounded(pointer: string): string {
  return pointer.length <= MAX_POINTER_LENGTH
    ? pointer
    : pointer.slice(0, pointer.lastIndexOf('/', MAX_POINTER_LENGTH));
}

function detailOf({ keyword, params, message }: ErrorObject): string {
  const told: Readonly<Record<string, unknown>> = params;
  switch (keyword) {
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return `must not have the member ${nameOf(told['additionalProperty'] ?? told['unevaluatedProperty'])}`;
    case 'propertyNames':
      return `must not have a member named ${nameOf(told['propertyName'])}`;
    case 'enum':
      return cut(`must be one of ${JSON.stringify(told['allowedValues'])}`);
    case 'const':
      return cut(`must be ${JSON.stringify(told['allowedValue'])}`);
    default:
      return cut(message ?? `must satisfy ${keyword}`);
  }
}

function nameOf(name: unknown): string {
  return quoted(typeof name === 'string' ? name : '');
}

function cut(detail: string): string {
  return detail.length <= MAX_DETAIL_LENGTH ? detail : `${detail.slice(0, MAX_DETAIL_LENGTH)}…`;
}
