// Breadth first through a world: from every state every move, and from every state every race of two, where both decide
// on the same state and the second is written after the first. A violation is thrown with the way that led to it.

import { type StoreGuard, EMPTY_STORE } from './model-store.js';
import { type Cast, type Move, movesFrom } from './moves.js';
import { type Proposal, propose } from './proposal.js';
import { step } from './step.js';
import { checkHistories, checkWorld } from './world-invariants.js';
import { WorldKeys } from './world-key.js';
import { type Chapter, NOTHING_KNOWN, type World } from './world.js';

export interface Exploration {
  readonly cast: Cast;
  /** Submitted before anything else happens. */
  readonly admitted: readonly string[];
  readonly clockSteps?: number;
  /** Whether two decide on one state. */
  readonly races: boolean;
  /** A world that does not close within so many states is explored up to there, and says so. */
  readonly maxStates: number;
  /** Taken away from the store, to see that it is missed. */
  readonly missing?: StoreGuard;
}

export interface Explored {
  readonly states: number;
  readonly transitions: number;
  /** Decisions on a state that was no longer the store's, and how many of them the store refused. */
  readonly races: number;
  readonly lostRaces: number;
  readonly closed: boolean;
  /** Every edge that was taken, `from>to`. */
  readonly edges: ReadonlySet<string>;
}

interface Node {
  readonly world: World;
  readonly way: Way | null;
}

interface Way {
  readonly before: Way | null;
  readonly name: string;
}

export function explore(exploration: Exploration): Explored {
  return new Explorer(exploration).run();
}

class Explorer {
  private readonly keys: WorldKeys;
  private readonly seen = new Set<string>();
  private readonly edges = new Set<string>();
  private transitions = 0;
  private races = 0;
  private lostRaces = 0;
  private frontier: Node[] = [];

  constructor(private readonly exploration: Exploration) {
    this.keys = new WorldKeys(exploration.cast);
  }

  run(): Explored {
    const { maxStates } = this.exploration;
    this.frontier = [{ world: this.beginning(), way: null }];
    for (let depth = this.frontier; depth.length > 0; depth = this.frontier) {
      this.frontier = [];
      for (const node of depth) {
        if (this.seen.size >= maxStates) return this.explored(false);
        this.expand(node);
      }
    }
    return this.explored(true);
  }

  private explored(closed: boolean): Explored {
    const { transitions, races, lostRaces, edges } = this;
    return { states: this.seen.size, transitions, races, lostRaces, closed, edges };
  }

  private expand({ world, way }: Node): void {
    const moves = movesFrom(world, this.exploration.cast);
    const decided: { readonly move: Move; readonly proposal: Proposal; readonly way: Way }[] = [];
    for (const move of moves) {
      const next: Way = { before: way, name: move.name };
      this.guarded(next, () => {
        if (move.wish === null) return this.reach({ ...world, ...move.to }, next, world);
        const proposal = propose(world.store, world.now, move.wish, move.tell === true);
        decided.push({ move, proposal, way: next });
      });
    }
    const late = this.exploration.races ? decided.filter(({ proposal }) => plansOf(proposal) > 0) : [];
    for (const first of decided) {
      let after = world;
      this.guarded(first.way, () => {
        after = step(world, first.move, first.proposal, 'fresh', this.exploration.missing);
        if (after === world) this.transitions += 1;
        else this.reach(after, first.way, world);
      });
      if (after.store === world.store) continue;
      for (const second of late) this.race(after, first.way, second.move, second.proposal);
    }
  }

  /** The second decided on what the first has changed since. */
  private race(after: World, way: Way, move: Move, proposal: Proposal): void {
    const next: Way = { before: way, name: `${move.name}, decided before that` };
    this.guarded(next, () => {
      this.races += 1;
      const both = step(after, move, proposal, 'late', this.exploration.missing);
      if (both === after) this.lostRaces += 1;
      else this.reach(both, next, after);
    });
  }

  private reach(world: World, way: Way, from: World): void {
    this.transitions += 1;
    if (world.store !== from.store) {
      checkWorld(world);
      this.noteEdges(world, from);
    }
    const key = this.keys.keyOf(world);
    if (this.seen.has(key)) return;
    this.seen.add(key);
    checkHistories(world);
    this.frontier.push({ world, way });
  }

  private noteEdges(world: World, from: World): void {
    for (const [taskId, chapter] of world.known.histories) {
      for (let at: Chapter | null = chapter; at !== null && at !== from.known.histories.get(taskId); at = at.before) {
        for (const event of at.events) if (event.to !== null) this.edges.add(`${event.from ?? ''}>${event.to}`);
      }
    }
  }

  private beginning(): World {
    const { cast, admitted, clockSteps = 0 } = this.exploration;
    const sessions = new Map(cast.sessions.map((sessionId) => [sessionId, sessionRow(sessionId)]));
    const store = { ...EMPTY_STORE, sessions };
    let world: World = { now: T0, store, claims: [], telling: null, clockSteps, known: NOTHING_KNOWN };
    for (const taskId of admitted) {
      const submit = movesFrom(world, cast).find(({ name }) => name === `submit ${taskId}`);
      if (submit === undefined || submit.wish === null) throw new Error(`${taskId} has no part in this world`);
      world = step(world, submit, propose(world.store, world.now, submit.wish, true), 'fresh');
    }
    this.seen.add(this.keys.keyOf(world));
    return world;
  }

  private guarded(way: Way, act: () => void): void {
    try {
      act();
    } catch (error) {
      throw new Violation(namesOf(way), error);
    }
  }
}

/** What does not hold, and the moves that led there. */
export class Violation extends Error {
  constructor(
    readonly way: readonly string[],
    cause: unknown,
  ) {
    super(`${cause instanceof Error ? cause.message : String(cause)}\n  after ${way.join('\n        ')}`, { cause });
  }
}

/** Epoch ms at which every world begins. */
export const T0 = 1_700_000_000_000;

function sessionRow(sessionId: string) {
  const worker = { workerName: sessionId, helloJson: '{}', lingerMs: null, ttlMs: 30_000 };
  return { sessionId, state: 'live' as const, expiresAt: T0 + 30_000, attachment: 1, createdAt: T0, ...worker };
}

function plansOf({ parts }: Proposal): number {
  return parts.filter(({ plan }) => plan !== null).length;
}

function namesOf(way: Way): readonly string[] {
  const names: string[] = [];
  for (let at: Way | null = way; at !== null; at = at.before) names.push(at.name);
  return names.reverse();
}
