/**
 * The judge's rules about runs of workflows, by what machines and the webhooks' receiver have
 * logged, and by records as they were written. What a template says it knows from who wrote it.
 *
 * W1 What never runs twice by itself begins once for an order, and again in its run only after it
 *    ended with a failure and has retries left, or a person has acted on its host.
 * W2 A hand-off acts at most once, after its end stood in the host's record, and nothing else
 *    begins in its boot any more.
 * W3 Steps begin in the order of the template, none whose condition is false by what programs
 *    ended with, and after a handler none but handlers.
 * W4 One host's run carries a workflow's run, numbers only rise, what has ended never changes, and
 *    no two programs work on a machine at once.
 * W5 What is done is what the template said when the run was started.
 * W6 No pending run outlives its deadline; nothing is done for a host that is gone.
 * W7 A key of a webhook names one call.
 * W8 When the faults stop, every run of a workflow ends.
 * W9 A command that destroys begins under a work lease of that moment, however long its image took.
 */
import { createHash } from 'node:crypto';
import { equals, fromBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type Run,
  RunKind,
  RunPhase,
  StepState,
  store,
  type WorkflowRun,
  WorkflowRunSchema,
  WorkflowRunState,
} from '@rackwright/messages';
import type { JudgedHost, JudgeParts } from '../judged.ts';
import type { WorldView } from '../view.ts';
import { ownTemplate } from './own-steps.ts';
import type { WorkEvent } from './programs.ts';
import { burnTitle, type Recipe, type RecipeStep } from './recipes.ts';

/** A pending run may stay for so long after its deadline, when nothing goes wrong. */
const deadlineSlackMs = 5 * 60_000;

/** From the agent's last look at its lease to the program: the network, and reading an answer. */
const leaseSlackMs = 5_000;
/** What was ordered before its host went may still begin for so long. */
const goneSlackMs = 60_000;

/** What it looks at. */
export interface WorkflowJudgeParts extends Pick<JudgeParts, 'leaseUntilMs'> {
  readonly view: Pick<WorldView, 'heap' | 'book' | 'count'>;
  readonly logs: Pick<JudgeParts['logs'], 'work'>;
}

/** A run of a host as its machine went through it. */
interface WorkedRun {
  readonly digest: string;
  /** Titles in the order of their first beginning, since the store last went back. */
  readonly titles: string[];
  /** Begun before the store went back, or soon after: the run may do these again at any place. */
  readonly earlier: Set<string>;
  /** By title: what its latest attempt came to; undefined: nobody can say. */
  readonly codes: Map<string, number | undefined>;
  /** By title. */
  readonly attempts: Map<string, Attempts>;
  /** What a run of this number ran in a stretch that is lost; it may still be at work. */
  readonly lostDigest?: string;
}

/** How often something has begun in a run, and how often it may. */
interface Attempts {
  begun: number;
  allowed: number;
  /** Failures that were followed by another attempt, as the template says. */
  retried: number;
}

export class WorkflowJudge {
  readonly #parts: WorkflowJudgeParts;
  readonly #hosts: ReadonlyMap<string, JudgedHost>;
  readonly #found: (rule: string, text: string) => void;
  readonly #workflows = new Map<string, store.WorkflowRecord>();
  /** Digests that a template has had: the last one is in force. */
  readonly #digests = new Map<string, { atMs: number; digest: string }[]>();
  /** Workflow's uid and run number → when it was first seen. */
  readonly #pendingSince = new Map<string, number>();
  /** The same → number of the host's run that carries it. */
  readonly #carriers = new Map<string, bigint>();
  /** "<host uid>/<run>" → what its machine did. */
  readonly #runs = new Map<string, WorkedRun>();
  /** Those of them that a store which was put back knows nothing of. */
  readonly #lost = new Set<string>();
  /** Orders that stood in a record. */
  readonly #orders = new Set<string>();
  /** Host uid → since when there is no such host. */
  readonly #goneSinceMs = new Map<string, number>();
  readonly #begun = new Set<string>();
  /** Hand-offs whose end stood in a record. */
  readonly #recorded = new Set<string>();
  /** Boots that a hand-off has ended. */
  readonly #over = new Set<string>();
  /** Machine → the operation whose program is at work. */
  readonly #atWork = new Map<string, string>();
  readonly #keys = new Map<string, string>();
  #backUntilMs = -1;
  #read = 0;

  constructor(
    parts: WorkflowJudgeParts,
    hosts: ReadonlyMap<string, JudgedHost>,
    found: (rule: string, text: string) => void,
  ) {
    this.#parts = parts;
    this.#hosts = hosts;
    this.#found = found;
  }

  /** Nobody can know that orders were lost: their numbers are used again. */
  forgetOrders(): void {
    for (const kept of [this.#keys, this.#carriers, this.#begun]) kept.clear();
    for (const kept of [this.#orders, this.#recorded, this.#lost]) kept.clear();
    const counts = new Map(
      [...this.#hosts.values()].map(({ record }) => [record.host?.uid ?? '', record.runCount]),
    );
    for (const [ofRun, { digest, earlier, titles }] of this.#runs) {
      const [uid = '', number = '0'] = ofRun.split('/');
      if (BigInt(number) > (counts.get(uid) ?? 0n)) this.#runs.delete(ofRun);
      else this.#runs.set(ofRun, newRun(digest, new Set([...earlier, ...titles])));
    }
  }

  /** The store went back: for a while machines still do what stands there no more. */
  restored(forMs: number): void {
    this.#backUntilMs = this.#parts.view.heap.nowMs + forMs;
  }

  /** An older state of the store stands there now: what it says of templates and workflows. */
  reload(): void {
    for (const kept of [this.#workflows, this.#digests, this.#pendingSince]) kept.clear();
    this.#carriers.clear();
  }

  /** The same of a host. */
  reloaded({ host, operation, call, finishedRuns, runCount }: store.HostRecord): void {
    for (const ofRun of this.#runs.keys()) {
      const [uid, number = '0'] = ofRun.split('/');
      if (uid === host?.uid && BigInt(number) > runCount) this.#lost.add(ofRun);
    }
    for (const run of [host?.status?.run, ...finishedRuns]) {
      if (run?.kind !== RunKind.WORKFLOW) continue;
      const ofRun = `${host?.uid}/${run.number}`;
      const known = this.#runs.get(ofRun);
      if (known?.digest === run.templateDigest) continue;
      this.#runs.set(ofRun, newRun(run.templateDigest));
    }
    for (const id of [operation?.operation?.id, call?.id]) this.#orders.add(id ?? '');
  }

  /** Takes in what was written; undefined: it is gone. */
  note(key: string, value: Uint8Array | undefined): void {
    if (key.startsWith('templates.')) this.#noteTemplate(key, value);
    if (key.startsWith('workflows.')) this.#noteWorkflow(key, value);
  }

  /** Takes in a written record of a host. */
  changed({ host, operation, call, change, finishedRuns }: store.HostRecord): void {
    const uid = host?.uid ?? '';
    this.#goneSinceMs.delete(uid);
    for (const id of [operation?.operation?.id, call?.id]) {
      if (id !== undefined && id !== '') this.#orders.add(id);
    }
    if (change?.actor.startsWith('user:') === true) {
      for (const [ofRun, { attempts }] of this.#runs) {
        if (!ofRun.startsWith(`${uid}/`)) continue;
        for (const each of attempts.values()) each.allowed = each.begun + 1;
      }
    }
    for (const run of [host?.status?.run, ...finishedRuns]) {
      if (run?.kind === RunKind.WORKFLOW) this.#noteRun(uid, run);
    }
  }

  #noteRun(uid: string, run: Run): void {
    for (const [index, { handOff, state, attempt }] of run.steps.entries()) {
      if (!handOff || state !== StepState.SUCCEEDED) continue;
      this.#recorded.add(`${uid}/${run.number}/${index}/${attempt}`);
    }
    this.#noteCarrier(uid, run);
  }

  /** A host is gone. */
  removed({ host }: store.HostRecord): void {
    this.#goneSinceMs.set(host?.uid ?? '', this.#parts.view.heap.nowMs);
  }

  look(): void {
    const { work } = this.#parts.logs;
    for (; this.#read < work.length; this.#read++) {
      const event = work[this.#read];
      // What cleans run has a judge of its own.
      if (event !== undefined && event.templateId !== ownTemplate) this.#judge(event);
    }
  }

  /** W8, and W6 by the time. */
  end(): void {
    for (const [key, record] of this.#workflows) {
      const run = record.workflow?.status?.run;
      if (run === undefined || isOver(run)) continue;
      const why = run.waiting?.message ?? 'nothing';
      this.#found('W8', `${key}: run ${run.number} is open at the end; it waits for ${why}`);
    }
  }

  /** Whether every run of a workflow has ended. */
  isSettled(): boolean {
    return [...this.#workflows.values()].every(({ workflow }) => {
      const run = workflow?.status?.run;
      return run === undefined || isOver(run);
    });
  }

  /** W6: looked at from time to time, once nothing goes wrong any more. */
  judgeDeadlines(quietSinceMs: number, wallNowMs: number): void {
    const { nowMs } = this.#parts.view.heap;
    for (const [key, { workflow }] of this.#workflows) {
      const run = workflow?.status?.run;
      if (run?.state !== WorkflowRunState.PENDING) continue;
      const deadlineMs = run.deadline === undefined ? 0 : timestampMs(run.deadline);
      const overMs = Math.min(wallNowMs - deadlineMs, nowMs - quietSinceMs);
      if (overMs > deadlineSlackMs) {
        this.#found('W6', `${key}: run ${run.number} is pending beyond its deadline`);
      }
    }
  }

  #noteTemplate(key: string, value: Uint8Array | undefined): void {
    const id = key.slice('templates.'.length);
    const { nowMs: atMs } = this.#parts.view.heap;
    const record = value && fromBinary(store.TemplateRecordSchema, value);
    const source = record?.template?.source ?? '';
    const digest = createHash('sha256').update(source).digest('hex');
    const known = this.#digests.get(id) ?? [];
    if (known.at(-1)?.digest === digest) return;
    this.#digests.set(id, [...known, { atMs, digest }]);
  }

  #noteWorkflow(key: string, value: Uint8Array | undefined): void {
    const before = this.#workflows.get(key);
    if (value === undefined) {
      this.#workflows.delete(key);
      return;
    }
    const record = fromBinary(store.WorkflowRecordSchema, value);
    this.#workflows.set(key, record);
    const run = record.workflow?.status?.run;
    if (run !== undefined) {
      const id = `${record.workflow?.uid}/${run.number}`;
      if (!this.#pendingSince.has(id)) this.#pendingSince.set(id, this.#parts.view.heap.nowMs);
    }
    if (before?.workflow?.uid !== record.workflow?.uid || before === undefined) return;
    this.#judgeRuns(key, before, record);
  }

  /** W4. */
  #judgeRuns(key: string, before: store.WorkflowRecord, after: store.WorkflowRecord): void {
    const counts = [before, after].map(({ workflow }) => workflow?.status?.runCount ?? 0n);
    const [had = 0n, has = 0n] = counts;
    if (has < had || has > had + 1n) this.#found('W4', `${key}: counts ${has} runs after ${had}`);
    const runs = runsOf(after);
    for (const run of runs) {
      if (run.number > has) this.#found('W4', `${key}: run ${run.number} of ${has}`);
      const was = runsOf(before).find(({ number }) => number === run.number);
      if (was === undefined && run.number <= had) {
        this.#found('W4', `${key}: run ${run.number} came back`);
      }
      if (was === undefined || !isOver(was) || equals(WorkflowRunSchema, was, run)) continue;
      this.#found('W4', `${key}: run ${run.number} changed after its end`);
    }
    for (const { number, state } of runsOf(before)) {
      const isKept =
        state !== WorkflowRunState.RUNNING || runs.some((run) => run.number === number);
      if (!isKept) this.#found('W4', `${key}: run ${number} is gone while it runs`);
    }
    const open = runs.filter((run) => !isOver(run));
    if (open.length > 1) this.#found('W4', `${key}: ${open.length} runs of it are open`);
  }

  /** W4, W5: the run that a host carries, when it is first seen. */
  #noteCarrier(uid: string, run: Run): void {
    const ofRun = `${uid}/${run.number}`;
    const { templateDigest: digest } = run;
    const lostDigest = this.#numberedAgain(ofRun);
    const known = this.#runs.get(ofRun);
    if (known !== undefined && known.digest !== digest) {
      this.#found('W5', `${run.workflowRun}: run ${run.number} has another template now`);
    }
    if (known !== undefined) return;
    this.#runs.set(ofRun, { ...newRun(digest), ...(lostDigest !== undefined && { lostDigest }) });
    const [, hostId, , templateId = '', , number] = run.workflowRun.split('/');
    const workflow = this.#workflows.get(`workflows.${hostId}.${templateId}`)?.workflow;
    if (this.#parts.view.heap.nowMs < this.#backUntilMs) return;
    if (workflow?.status?.hostUid !== uid) {
      const text = `${ofRun} carries ${run.workflowRun}, which is none of this host`;
      if (run.phase !== RunPhase.ENDED && run.abort === undefined) this.#found('W6', text);
      return;
    }
    const id = `${workflow.uid}/${number}`;
    const carrier = this.#carriers.get(id);
    if (carrier !== undefined && carrier !== run.number) {
      this.#found('W4', `${run.workflowRun} is carried by runs ${carrier} and ${run.number}`);
    }
    this.#carriers.set(id, run.number);
    const sinceMs = this.#pendingSince.get(id) ?? 0;
    const digests = this.#digests.get(templateId) ?? [];
    // In force when the run was wanted, or at any time from then on.
    const inForce = digests.filter((_, at) => (digests[at + 1]?.atMs ?? Infinity) >= sinceMs);
    if (inForce.some((each) => each.digest === digest)) return;
    this.#found('W5', `${run.workflowRun} runs a template that was not in force: ${digest}`);
  }

  /**
   * That a store was put back is known once the agent says what it has seen. Until then a number
   * of the lost stretch may be given again; it names another run now, that goes nowhere before the
   * agent is there. Answers what ran under it.
   */
  #numberedAgain(ofRun: string): string | undefined {
    if (!this.#lost.delete(ofRun)) return undefined;
    const lostDigest = this.#runs.get(ofRun)?.digest;
    this.#runs.delete(ofRun);
    for (const kept of [this.#keys, this.#recorded]) {
      for (const id of kept.keys()) if (id.startsWith(`${ofRun}/`)) kept.delete(id);
    }
    this.#parts.view.count('number of a lost run given again');
    return lostDigest;
  }

  #judgeBegin(event: WorkEvent, isBack: boolean): void {
    const { operationId, boot, title, atMs } = event;
    if (!isBack && this.#over.has(boot)) {
      this.#found('W2', `${operationId} begins in a boot that was handed off`);
    }
    this.#judgeAlone(event);
    const unleasedMs = atMs - this.#parts.leaseUntilMs();
    if (title === burnTitle && unleasedMs > leaseSlackMs) {
      this.#found('W9', `${operationId} begins ${unleasedMs} ms after the last work lease`);
    }
  }

  #judge(event: WorkEvent): void {
    const { act, operationId, machine } = event;
    const ofRun = operationId.split('/').slice(0, 2).join('/');
    const run = this.#runs.get(ofRun);
    const isBack = event.atMs < this.#backUntilMs;
    if (act === 'begun') this.#judgeBegin(event, isBack);
    if (act === 'ended' || act === 'cut' || act === 'left') {
      if (this.#atWork.get(machine) === operationId) this.#atWork.delete(machine);
    }
    if (act === 'left') this.#over.add(event.boot);
    if (run === undefined) {
      if (!isBack) this.#found('W6', `${machine} ${act} ${operationId}, which no host's run names`);
      return;
    }
    const { book } = this.#parts.view;
    const recipe = book.byDigest(run.digest);
    const step = stepOf(recipe, event);
    if (step === undefined) {
      const isLost = isBack && stepOf(book.byDigest(run.lostDigest ?? ''), event) !== undefined;
      if (isLost) return;
      this.#found('W5', `${operationId}: ${event.title} of version ${event.version} is done`);
      return;
    }
    if (act === 'ended') this.#ended(event, run, step);
    if (act === 'called') this.#judgeKey(event);
    if (act !== 'begun' && act !== 'wrote' && act !== 'called') return;
    this.#judgeWork(event, run, step, { isBack, steps: recipe?.steps ?? [] });
  }

  #judgeWork(
    event: WorkEvent,
    run: WorkedRun,
    step: RecipeStep,
    { isBack, steps }: { readonly isBack: boolean; readonly steps: readonly RecipeStep[] },
  ): void {
    if (!isBack) this.#judgeOrder(event);
    if (event.act !== 'called') this.#judgeTwice(event, run, step, isBack);
    if (isBack) run.earlier.add(event.title);
    else this.#judgePlace(event, run, step, steps);
    run.codes.set(event.title, undefined);
  }

  #ended({ title, code }: WorkEvent, run: WorkedRun, { retries }: RecipeStep): void {
    run.codes.set(title, code);
    if (code === undefined || code === 0) return;
    // What has failed may be tried again, so often.
    const attempts = attemptsOf(run, title);
    if (attempts.retried >= retries) return;
    attempts.retried += 1;
    attempts.allowed = attempts.begun + 1;
  }

  /** W4: a machine does one thing at a time. */
  #judgeAlone({ machine, operationId }: WorkEvent): void {
    const other = this.#atWork.get(machine);
    if (other !== undefined) this.#found('W4', `${operationId} begins while ${other} is at work`);
    this.#atWork.set(machine, operationId);
  }

  /** W6: somebody has ordered it, and the host is there. */
  #judgeOrder({ operationId, act, atMs }: WorkEvent): void {
    const [uid = ''] = operationId.split('/');
    if (!this.#orders.has(operationId)) {
      this.#found('W6', `${operationId} is ${act} and was never ordered`);
    }
    const goneMs = atMs - (this.#goneSinceMs.get(uid) ?? atMs);
    if (goneMs > goneSlackMs) this.#found('W6', `${operationId} is ${act}, its host is gone`);
  }

  /** W1, and W2 for what hands over. */
  #judgeTwice(
    { operationId, title }: WorkEvent,
    run: WorkedRun,
    { isSafe, handOff }: RecipeStep,
    isBack: boolean,
  ): void {
    if (this.#begun.has(operationId)) {
      this.#found(handOff ? 'W2' : 'W1', `${operationId} began ${title} twice`);
    }
    this.#begun.add(operationId);
    if (handOff && !isBack && !this.#recorded.has(operationId)) {
      this.#found('W2', `${operationId} hands over before its end is recorded`);
    }
    const attempts = attemptsOf(run, title);
    attempts.begun += 1;
    if (!isSafe && !isBack && attempts.begun > attempts.allowed) {
      this.#found('W1', `${operationId} does ${title} again, and nobody has said so`);
    }
  }

  /** W3. */
  #judgePlace(
    { title, operationId }: WorkEvent,
    run: WorkedRun,
    step: RecipeStep,
    steps: readonly RecipeStep[],
  ): void {
    if (run.titles.includes(title) || run.earlier.has(title)) return;
    const places = new Map(steps.map((each, place) => [each.title, place]));
    const before = run.titles.find((each) => (places.get(each) ?? 0) > (places.get(title) ?? 0));
    if (before !== undefined) {
      this.#found('W3', `${operationId}: ${title} begins after ${before}`);
    }
    run.titles.push(title);
    const { after } = step;
    if (after === undefined) return;
    const code = run.codes.get(after.title);
    if (code !== after.code) {
      const text = `${after.title} ended with ${code}, not with ${after.code}`;
      this.#found('W3', `${operationId}: ${title} begins although ${text}`);
    }
  }

  /** W7. */
  #judgeKey({ operationId, templateId, version, title }: WorkEvent): void {
    const what = `${title} of version ${version} of ${templateId}`;
    const known = this.#keys.get(operationId);
    if (known !== undefined && known !== what) {
      this.#found('W7', `${operationId} names ${known} and ${what}`);
    }
    this.#keys.set(operationId, what);
  }
}

/** The step that an event is of, as its recipe has it; undefined: it has none such. */
function stepOf(recipe: Recipe | undefined, event: WorkEvent): RecipeStep | undefined {
  const isSame = recipe?.version === event.version && recipe.templateId === event.templateId;
  return isSame ? recipe.steps.find(({ title }) => title === event.title) : undefined;
}

function newRun(digest: string, earlier = new Set<string>()): WorkedRun {
  return { digest, titles: [], earlier, codes: new Map(), attempts: new Map() };
}

function attemptsOf({ attempts }: WorkedRun, title: string): Attempts {
  const known = attempts.get(title) ?? { begun: 0, allowed: 1, retried: 0 };
  attempts.set(title, known);
  return known;
}

function isOver({ state }: WorkflowRun): boolean {
  return state !== WorkflowRunState.PENDING && state !== WorkflowRunState.RUNNING;
}

function runsOf({ workflow, earlierRuns }: store.WorkflowRecord): WorkflowRun[] {
  const latest = workflow?.status?.run;
  return latest === undefined ? [...earlierRuns] : [latest, ...earlierRuns];
}
