/**
 * TaskService: every method of the contract and the file that answers it.
 */
import type { Authority } from '../authority/authority.js';
import type { Dispatcher } from '../dispatcher/dispatcher.js';
import type { TaskService } from '../gen/reeve/v1/task_service_pb.js';
import type { ActionKindRegistry } from '../kernel/admission/action-kinds.js';
import type { CursorMint } from '../wire/cursor.js';
import type { TokenMint } from '../wire/opaque-token.js';
import type { Handlers } from './call.js';
import { CancelBatches } from './cancel-batch.js';
import { Cancels } from './cancel.js';
import { Claims } from './claim.js';
import { Explains } from './explain.js';
import { Gets } from './get.js';
import { Intents } from './intents.js';
import { EventLists } from './list-events.js';
import { Lists } from './list.js';
import { ReceiptWaits } from './receipt-waits.js';
import { Resumes } from './resume.js';
import { submitStreamHandler } from './submit-stream.js';
import { Submissions } from './submit.js';
import type { TaskFeed } from './task-feed.js';
import { TaskViews } from './task-views.js';
import { Transitions } from './transition.js';
import { PolicyUpdates } from './update-policy.js';
import { watchHandler } from './watch.js';

export interface TaskServiceContext {
  readonly authority: Authority;
  readonly dispatcher: Dispatcher;
  readonly kinds: ActionKindRegistry;
  readonly feed: TaskFeed;
  readonly tokens: TokenMint;
  readonly cursors: CursorMint;
  readonly onDefect: (error: unknown) => void;
}

export function taskService(context: TaskServiceContext): Handlers<typeof TaskService> {
  const { authority, dispatcher, kinds, feed, tokens } = context;
  const views = new TaskViews(authority);
  const intents = new Intents(authority, dispatcher.rules);
  const submissions = new Submissions(authority, kinds, views);
  const transitions = new Transitions(
    authority,
    intents,
    new Claims(authority, dispatcher, intents),
    views,
    dispatcher.rules,
  );
  const cancels = new Cancels(authority, intents, views, new ReceiptWaits(authority, feed));
  const cancelBatches = new CancelBatches(authority, cancels, tokens);
  const resumes = new Resumes(authority, intents, views);
  const policyUpdates = new PolicyUpdates(authority, intents, views);
  const explains = new Explains(authority, dispatcher, views);
  const gets = new Gets(authority, views);
  const lists = new Lists(authority, views, tokens);
  const eventLists = new EventLists(authority);
  return {
    submit: (request, call) => submissions.submit(request, call),
    submitBatch: (request, call) => submissions.submitBatch(request, call),
    submitStream: submitStreamHandler({ ...context, submissions }),
    transition: (request, call) => transitions.transition(request, call),
    cancel: (request, call) => cancels.cancel(request, call),
    resume: (request, call) => resumes.resume(request, call),
    get: (request) => gets.get(request),
    list: (request) => lists.list(request),
    listEvents: (request) => eventLists.listEvents(request),
    watch: watchHandler(context),
    cancelBatch: (request, call) => cancelBatches.cancelBatch(request, call),
    updatePolicy: (request, call) => policyUpdates.update(request, call),
    explain: (request) => explains.explain(request),
  };
}
