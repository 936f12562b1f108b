/**
 * What can be told of a frame without decoding it: most frames only pass through the keeper of a stream, and decoding
 * them twice would cost more than carrying them.
 */
import type { DescMessage } from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import {
  ClaimSchema,
  ClaimsSchema,
  type WorkRequest,
  WorkRequestSchema,
  type WorkResponse,
  WorkResponseSchema,
} from '../../../gen/reeve/v1/worker_service_pb.js';
import type { HeldRef } from './link.js';

/** What a worker says. */
export type FrameKind = Exclude<WorkRequest['frame']['case'], undefined>;
/** What a server says. */
export type ServerFrameKind = Exclude<WorkResponse['frame']['case'], undefined>;

const requestKinds = kindsOf<FrameKind>(WorkRequestSchema);
const responseKinds = kindsOf<ServerFrameKind>(WorkResponseSchema);
const claimsField = WorkResponseSchema.field.claims.number;
const itemField = ClaimsSchema.field.claims.number;
const taskIdField = ClaimSchema.field.taskId.number;
const epochField = ClaimSchema.field.epoch.number;

/** Null for a kind of some later version. @throws Error for what is no message. */
export function serverFrameKind(frame: Uint8Array): ServerFrameKind | null {
  return kindOf(responseKinds, frame);
}

export function workerFrameKind(frame: Uint8Array): FrameKind | null {
  return kindOf(requestKinds, frame);
}

/** The claims that a frame of Claims carries. */
export function claimRefs(frame: Uint8Array): HeldRef[] {
  const refs: HeldRef[] = [];
  const reader = new BinaryReader(frame);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field !== claimsField) {
      reader.skip(wireType, field);
      continue;
    }
    // The list is a message of its own: its items follow its length.
    const end = reader.uint32() + reader.pos;
    while (reader.pos < end) {
      const [item, itemType] = reader.tag();
      if (item === itemField) refs.push(claimRef(reader));
      else reader.skip(itemType, item);
    }
  }
  return refs;
}

function claimRef(reader: BinaryReader): HeldRef {
  const end = reader.uint32() + reader.pos;
  let taskId = '';
  let epoch = 0n;
  while (reader.pos < end) {
    const [field, wireType] = reader.tag();
    if (field === taskIdField) taskId = reader.string();
    else if (field === epochField) epoch = BigInt(reader.int64());
    else reader.skip(wireType, field);
  }
  return { taskId, epoch };
}

function kindOf<Kind>(kinds: ReadonlyMap<number, Kind>, frame: Uint8Array): Kind | null {
  const reader = new BinaryReader(frame);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    const kind = kinds.get(field);
    if (kind !== undefined) return kind;
    reader.skip(wireType, field);
  }
  return null;
}

function kindsOf<Kind extends string>(schema: DescMessage): ReadonlyMap<number, Kind> {
  const fields = schema.oneofs.flatMap((oneof) => oneof.fields);
  // The cases of the message's type are the local names of the oneof's fields: both are generated from them.
  return new Map(fields.map(({ number, localName }) => [number, localName as Kind]));
}
