/**
 * Who acts, as the history will tell it: the login name unless another is given. Not proof of anything; the
 * authenticated identity stands beside it as `principal`.
 */
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { ActorType } from '../../gen/reeve/v1/task_pb.js';

export interface ActorOptions {
  readonly actor?: string;
}

/** @param where it is told. */
export function addActorOption(command: Command, where: 'history' | 'log' = 'history'): Command {
  return command.option('--actor <name>', `who acts, for the ${where}; the login name unless given`);
}

export function producerOf({ actor }: ActorOptions): { readonly type: ActorType; readonly id: string } {
  return { type: ActorType.PRODUCER, id: actor ?? loginName() };
}

export function operatorOf({ actor }: ActorOptions): { readonly type: ActorType; readonly id: string } {
  return { type: ActorType.OPERATOR, id: actor ?? loginName() };
}

function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    // No entry in the password file, as in many containers.
    return '';
  }
}
