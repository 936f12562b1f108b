/**
 * What operators do with the store: proving it, and mending single tasks.
 */
import { create } from '@bufbuild/protobuf';
import { v7 as uuidv7 } from 'uuid';
import {
  AdminService,
  type Finding as FindingMessage,
  RepairRequestSchema,
  VerifyRequestSchema,
} from '../../gen/reeve/v1/admin_service_pb.js';
import type { CallOptions, RpcConnection } from '../transport/rpc.js';
import type { CallSettings } from './reeve-client.js';
import type { Task } from './task.js';
import { readTask } from './task-codec.js';
import { type RepairWord, repairWords } from './words.js';

/** Something that must not be; docs/operations/verify.md has the invariants. */
export interface Finding {
  /** Empty where it is about no task that has a name; the detail says what. */
  readonly taskId: string;
  readonly invariant: string;
  readonly detail: string;
  /** 0 when it is about no single event. */
  readonly eventNumber: number;
}

export interface VerifyOptions extends CallSettings {
  /** These only, at most 1,000. Default: the whole store. */
  readonly taskIds?: readonly string[];
  /** Tasks per call, 1 … 1,000. Default 200. */
  readonly pageSize?: number;
}

export interface VerifiedPage {
  readonly tasks: number;
  readonly events: number;
  readonly links: number;
  /** Purged tasks of which the rest was looked at. */
  readonly tombstones: number;
  /** Idempotency keys, sessions and permits; only of a whole store. */
  readonly keys: number;
  readonly sessions: number;
  readonly permits: number;
  readonly findings: readonly Finding[];
}

export interface RepairOptions extends CallSettings {
  readonly kind: RepairWord;
  /** Kept in the history. At most 1,024 bytes. */
  readonly reason: string;
  /** For `redact_payload`. */
  readonly eventNumber?: number;
  /** Only say what would be done. */
  readonly validateOnly?: boolean;
  /** Names this request. Default: a new UUIDv7. */
  readonly requestKey?: string;
}

export interface Repaired {
  readonly applied: boolean;
  readonly replayed: boolean;
  readonly findings: readonly Finding[];
  /** Undefined while it is damaged; a stub of one that was purged. */
  readonly task: Task | undefined;
}

type Run = <T>(attempt: (call: CallOptions) => Promise<T>, settings: CallSettings) => Promise<T>;

export class AdminClient {
  constructor(
    private readonly rpc: RpcConnection,
    private readonly run: Run,
  ) {}

  /** Checks the store page by page. Nothing is wrong when no page has findings. */
  async *verify(options: VerifyOptions = {}): AsyncGenerator<VerifiedPage, void, undefined> {
    const { taskIds = [], pageSize = 0 } = options;
    let pageToken = '';
    do {
      const request = create(VerifyRequestSchema, { taskIds: [...taskIds], pageSize, pageToken });
      const page = await this.run((call) => this.rpc.unary(AdminService.method.verify, request, call), options);
      const { tasks, events, links, tombstones, keys, sessions, permits, findings } = page;
      yield {
        tasks: Number(tasks),
        events: Number(events),
        links: Number(links),
        tombstones: Number(tombstones),
        keys: Number(keys),
        sessions: Number(sessions),
        permits: Number(permits),
        findings: findings.map(readFinding),
      };
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
  }

  /** Mends one task, or takes a payload out of its history. @throws ReeveError INVALID_TRANSITION: it is of no use. */
  async repair(taskId: string, options: RepairOptions): Promise<Repaired> {
    const { kind, reason, eventNumber = 0, validateOnly = false, requestKey = uuidv7() } = options;
    const request = create(RepairRequestSchema, {
      taskId,
      kind: repairWords.value(kind),
      reason,
      eventNumber: BigInt(eventNumber),
      validateOnly,
      idempotencyKey: requestKey,
    });
    const answer = await this.run((call) => this.rpc.unary(AdminService.method.repair, request, call), options);
    const { applied, replayed, findings, task } = answer;
    return { applied, replayed, findings: findings.map(readFinding), task: task && readTask(task) };
  }
}

function readFinding({ taskId, invariant, detail, eventNumber }: FindingMessage): Finding {
  return { taskId, invariant, detail, eventNumber: Number(eventNumber) };
}
