/**
 * The registry of action kinds that a deployment's settings make: schemas compiled, time-outs checked, once at start.
 * What is wrong with a setting ends the start with its place and the name of the kind.
 */
import { type ActionKindRegistry, buildActionKindRegistry } from '../kernel/admission/action-kinds.js';
import type { ActionKindSetting } from './action-kind-setting.js';
import { ConfigError } from './option-values.js';

/** Throws ConfigError. */
export async function registryOf(settings: readonly ActionKindSetting[]): Promise<ActionKindRegistry> {
  // Most deployments have no schema, and the compiler takes a while to load.
  const schemas = settings.some(({ argsSchema }) => argsSchema !== undefined)
    ? await import('./args-schema.js')
    : undefined;
  const registrations = settings.map(({ name, argsSchema, argsSchemaFile, allowEmptyArgs, timeoutMs }, index) => {
    let checkArgs;
    try {
      checkArgs = argsSchema === undefined ? undefined : schemas?.compileArgsSchema(argsSchema);
    } catch (error) {
      if (schemas === undefined || !(error instanceof schemas.SchemaProblem)) throw error;
      const file = argsSchemaFile === undefined ? '' : ` ${argsSchemaFile}:`;
      throw new ConfigError(`action_kinds[${index}] ${name}: args_schema:${file} ${error.message}`);
    }
    return { kind: name, checkArgs, allowEmptyArgs: allowEmptyArgs ?? true, timeoutMs: timeoutMs ?? null };
  });
  const built = buildActionKindRegistry(registrations);
  if (!built.ok) throw new ConfigError(`${built.refusal.field}: ${built.refusal.detail}`);
  return built.value;
}
