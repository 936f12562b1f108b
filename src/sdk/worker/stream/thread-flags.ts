/**
 * The flags of this process as a thread may inherit them. Those that only say what the main script is (`node -e`,
 * `--input-type`, …) would make the thread refuse its own file.
 */

/** Followed by their text, unless another flag comes next. */
const WITH_TEXT: ReadonlySet<string> = new Set(['-e', '--eval', '-p', '--print', '-pe']);
const ALONE: ReadonlySet<string> = new Set(['-i', '--interactive', '-c', '--check']);
/** In the command line and in NODE_OPTIONS. */
const INPUT_TYPE = /^--(?:experimental-default-type|input-type)(?:=|$)/;
const INPUT_TYPE_IN_TEXT = /(^|\s)--(?:experimental-default-type|input-type)(?:=|\s+)\S+/g;

export function threadFlags(flags: readonly string[]): string[] {
  const kept: string[] = [];
  for (let index = 0; index < flags.length; index += 1) {
    const flag = flags[index] ?? '';
    if (ALONE.has(flag) || /^--(eval|print)=/.test(flag)) continue;
    if (WITH_TEXT.has(flag) || INPUT_TYPE.test(flag)) {
      if (!flag.includes('=') && flags[index + 1]?.startsWith('-') === false) index += 1;
      continue;
    }
    kept.push(flag);
  }
  return kept;
}

export interface Inherited {
  readonly execArgv?: string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** For `new Worker`. Empty as a rule: a thread inherits by itself, flags of the whole process among them. */
export function inheritedBy({ execArgv, env }: Pick<NodeJS.Process, 'execArgv' | 'env'>): Inherited {
  const flags = threadFlags(execArgv);
  const text = env['NODE_OPTIONS'] ?? '';
  const options = text.replaceAll(INPUT_TYPE_IN_TEXT, '');
  return {
    ...(flags.length < execArgv.length && { execArgv: flags }),
    ...(options !== text && { env: { ...env, NODE_OPTIONS: options } }),
  };
}
