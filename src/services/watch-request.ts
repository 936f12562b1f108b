/**
 * From a WatchRequest to the source that it asks for: its scope, and where it begins. Owns which cursors belong to
 * which scope.
 */
import type { QueueName, WatchRequest } from '../gen/reeve/v1/task_service_pb.js';
import { resolveNamespace, resolveQueue } from '../kernel/admission/identifiers.js';
import { expiredCursor } from '../wire/cursor.js';
import { checked, malformedField } from '../wire/refusal-error.js';
import { requiredTaskId } from '../wire/transition-codec.js';
import type { WatchContext } from './watch.js';
import { QueueMembers, type ScopeMembers, SubtreeMembers } from './watch-members.js';
import { ScopeSource, type ScopeStart } from './watch-scope.js';
import type { WatchSource } from './watch-source.js';
import { TaskSource } from './watch-task.js';

/** Before the first event of anything. */
const BEGINNING = '0';

type Context = Omit<WatchContext, 'feed'>;

export function sourceOf(request: WatchRequest, context: Context): WatchSource {
  const { scope } = request;
  switch (scope.case) {
    case undefined:
      throw malformedField('scope', 'is required');
    case 'taskId':
      return taskSource(request, context, requiredTaskId('task_id', scope.value));
    case 'subtreeOf': {
      const rootId = requiredTaskId('subtree_of', scope.value);
      return scopeSource(request, context, `watch subtree\n${rootId}`, new SubtreeMembers(context.authority, rootId));
    }
    case 'queue':
      return queueSource(request, context, scope.value);
    case 'namespace': {
      const namespace = checked(resolveNamespace(scope.value));
      return scopeSource(request, context, `watch namespace\n${namespace}`, new QueueMembers(namespace, null));
    }
  }
}

function queueSource(request: WatchRequest, context: Context, name: QueueName): WatchSource {
  const namespace = checked(resolveNamespace(name.namespace), 'queue.');
  const queue = checked(resolveQueue(name.queue), 'queue.');
  return scopeSource(request, context, `watch queue\n${namespace}\n${queue}`, new QueueMembers(namespace, queue));
}

/** The history of one task is kept as long as the task is: its earliest cursor lies before all of it. */
function taskSource(request: WatchRequest, { authority, cursors }: Context, taskId: string): WatchSource {
  const purpose = `watch\n${taskId}`;
  const { cursor, fromStart } = request;
  if (cursor === '') return new TaskSource(authority, taskId, purpose, fromStart === false ? null : 0);
  refuseBoth(request);
  const position = cursors.read(purpose, cursor);
  if (position === null) throw expiredCursor(cursors.give(purpose, BEGINNING));
  return new TaskSource(authority, taskId, purpose, Number(position));
}

function scopeSource(
  request: WatchRequest,
  { authority, cursors, onDefect }: Context,
  purpose: string,
  members: ScopeMembers,
): WatchSource {
  const source = (start: ScopeStart): WatchSource =>
    new ScopeSource({ authority, cursors, purpose, members, start, onDefect });
  const { cursor, fromStart } = request;
  if (cursor === '') return source(fromStart === false ? 'now' : 'beginning');
  refuseBoth(request);
  return source({ position: cursors.read(purpose, cursor) });
}

function refuseBoth({ fromStart }: WatchRequest): void {
  if (fromStart !== undefined) throw malformedField('from_start', 'not together with a cursor');
}
