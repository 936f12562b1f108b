/**
 * The flags of a submission, or of a change, that say how a task is to be treated, and the TaskPolicy they make. Unset flags stay
 * unset, so that the service's defaults apply and a replay is compared with what was really said.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { Command } from 'commander';
import {
  type CancellationPolicy,
  CancellationPolicySchema,
  DependencyCondition,
  type OnUnsatisfied,
  OnUnsatisfiedSchema,
  type RetryPolicySchema,
  type TaskPolicy,
  type TaskPolicySchema,
} from '../../gen/reeve/v1/task_pb.js';
import { msToDuration } from '../../sdk/transport/time.js';
import {
  collectList,
  collectPair,
  enumNumber,
  enumWords,
  integerBetween,
  numberBetween,
  parseMoment,
} from './argument-parsers.js';
import { parseDuration } from './duration.js';

export interface PolicyOptions {
  readonly priority?: number;
  readonly label?: Readonly<Record<string, string>>;
  readonly description?: string;
  readonly timeout?: number;
  readonly startBy?: number;
  readonly notBefore?: Date;
  readonly attemptTimeout?: number;
  readonly progressTimeout?: number;
  readonly maxAttempts?: number;
  readonly retryInitial?: number;
  readonly retryMultiplier?: number;
  readonly retryMaximum?: number;
  readonly retryJitter?: number;
  readonly nonRetryable?: readonly string[];
  readonly cancellationPolicy?: CancellationPolicy;
  readonly onUnsatisfied?: OnUnsatisfied;
  readonly concurrencyKey?: string;
  readonly retention?: number;
  readonly dependsOn?: readonly string[];
  readonly dependsOnEnd?: readonly string[];
}

const words = (schema: Parameters<typeof enumWords>[0]) => enumWords(schema).join(' | ');

/** The flags of what can be changed later. */
export function addChangeablePolicyOptions(command: Command): Command {
  return command
    .optionsGroup('Policy (durations: 250ms, 30s, 5m, 1h30m, 2d; unset: the service decides):')
    .option('--priority <n>', '-100 … 100; one step outweighs a minute of waiting', integerBetween(-100, 100))
    .option('--label <key=value>', 'for filters; repeatable', collectPair)
    .option('--description <text>', 'for people')
    .option('--timeout <duration>', 'from the start of a generation to its end', parseDuration)
    .option('--start-by <duration>', 'from the start of a generation to its first claim', parseDuration)
    .option('--not-before <moment>', 'not claimable before, 2026-05-01T08:00:00Z', parseMoment)
    .option('--attempt-timeout <duration>', 'from claim to settlement of one attempt', parseDuration)
    .option('--progress-timeout <duration>', 'longest silence of a started attempt', parseDuration)
    .option('--max-attempts <n>', 'attempts in all', integerBetween(1, 1_000))
    .option('--retry-initial <duration>', 'wait before the second attempt', parseDuration)
    .option('--retry-multiplier <n>', 'each further wait is so many times the last', numberBetween(1, 10))
    .option('--retry-maximum <duration>', 'no wait is longer', parseDuration)
    .option('--retry-jitter <share>', 'share of a wait left to chance, 0 … 1', numberBetween(0, 1))
    .option('--non-retryable <code>', 'error code that fails at once; repeatable', collectList)
    .option('--retention <duration>', 'how long the finished task is kept', parseDuration);
}

export function addPolicyOptions(command: Command): Command {
  return addChangeablePolicyOptions(command)
    .option('--cancellation-policy <word>', words(CancellationPolicySchema), enumNumber(CancellationPolicySchema))
    .option('--depends-on <task-id>', 'must complete first; repeatable', collectList)
    .option('--depends-on-end <task-id>', 'must end first, in whatever way; repeatable', collectList)
    .option('--on-unsatisfied <word>', words(OnUnsatisfiedSchema), enumNumber(OnUnsatisfiedSchema))
    .option(
      '--concurrency-key <key>',
      'tasks of one key take turns: one runs at a time unless the service was configured otherwise',
    );
}

/** Fields to make a policy from. */
export type PolicyInit = Exclude<MessageInitShape<typeof TaskPolicySchema>, TaskPolicy>;

/** Undefined when no flag was given. Parent links are the command's own. */
export function policyOf(options: PolicyOptions): PolicyInit | undefined {
  const span = (ms: number | undefined) => (ms === undefined ? undefined : msToDuration(ms));
  const retry = retryOf(options);
  const dependsOn = [
    ...(options.dependsOn ?? []).map((taskId) => ({ taskId, condition: DependencyCondition.SUCCEEDED })),
    ...(options.dependsOnEnd ?? []).map((taskId) => ({ taskId, condition: DependencyCondition.TERMINAL })),
  ];
  return withoutUnset<PolicyInit>({
    priority: options.priority,
    labels: options.label,
    description: options.description,
    timeout: span(options.timeout),
    startBy: span(options.startBy),
    notBefore: options.notBefore === undefined ? undefined : timestampFromDate(options.notBefore),
    attemptTimeout: span(options.attemptTimeout),
    progressTimeout: span(options.progressTimeout),
    retry,
    cancellationPolicy: options.cancellationPolicy,
    onUnsatisfied: options.onUnsatisfied,
    concurrencyKey: options.concurrencyKey,
    retention: span(options.retention),
    dependsOn: dependsOn.length === 0 ? undefined : dependsOn,
  });
}

function retryOf(options: PolicyOptions): MessageInitShape<typeof RetryPolicySchema> | undefined {
  return withoutUnset<MessageInitShape<typeof RetryPolicySchema>>({
    maxAttempts: options.maxAttempts,
    initial: options.retryInitial === undefined ? undefined : msToDuration(options.retryInitial),
    multiplier: options.retryMultiplier,
    maximum: options.retryMaximum === undefined ? undefined : msToDuration(options.retryMaximum),
    jitter: options.retryJitter,
    nonRetryableCodes: options.nonRetryable === undefined ? undefined : [...options.nonRetryable],
  });
}

/** Leaves the unset fields out; undefined when nothing is left. */
function withoutUnset<Init extends object>(fields: { readonly [K in keyof Init]?: Init[K] | undefined }):
  Init | undefined {
  const set = Object.entries(fields).filter(([, value]) => value !== undefined);
  // What is left are fields of Init with their values.
  return set.length === 0 ? undefined : (Object.fromEntries(set) as Init);
}
