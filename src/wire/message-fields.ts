/**
 * The type of a message's fields as something to build from: what `create` takes, without the message itself, so that
 * it can be spread and picked from. Types only.
 */
import type { DescMessage, MessageInitShape, MessageShape } from '@bufbuild/protobuf';

export type Fields<Desc extends DescMessage> = Exclude<MessageInitShape<Desc>, MessageShape<Desc>>;

/** Fields that may be there or not: spread into a message they leave out what has no value. */
export type OptionalField<Name extends string, Value> = { readonly [Field in Name]: Value } | Record<never, never>;
