/** What the judge of workflows makes of a store that went back. */
import { create, toBinary } from '@bufbuild/protobuf';
import {
  asRunNumber,
  asWorkflowRunNumber,
  asWorkflowUid,
  RunKind,
  RunPhase,
  store,
} from '@rackwright/messages';
import { EventHeap } from '@rackwright/sim';
import { expect, test } from 'vitest';
import { WorkflowJudge } from './judge.ts';
import type { WorkEvent } from './programs.ts';
import { type Recipe, TemplateBook } from './recipes.ts';

const book = new TemplateBook();
const [first, second] = [book.write('t1', 0), book.write('t1', 1)];

/** A judge that has seen run 2 of a host carry what the first recipe says. */
function seen() {
  const found: string[] = [];
  const work: WorkEvent[] = [];
  const view = { heap: new EventHeap(), book, count: () => undefined };
  const logs = { work };
  const parts = { view, logs, leaseUntilMs: () => 0 };
  const judge = new WorkflowJudge(parts, new Map(), (rule, text) => found.push(`${rule} ${text}`));
  const template = create(store.TemplateRecordSchema, { template: { source: first.source } });
  judge.note('templates.t1', toBinary(store.TemplateRecordSchema, template));
  const status = { hostUid: 'u1', runCount: 1n, run: { number: asWorkflowRunNumber(1) } };
  const workflow = create(store.WorkflowRecordSchema, {
    workflow: { uid: asWorkflowUid('w1'), status },
  });
  judge.note('workflows.h1.t1', toBinary(store.WorkflowRecordSchema, workflow));
  judge.changed(carrying(first));
  return { judge, found, work };
}

function carrying({ digest: templateDigest }: Recipe, runCount = 2n): store.HostRecord {
  const workflowRun = 'hosts/h1/workflows/t1/runs/1';
  const run = { number: asRunNumber(2), kind: RunKind.WORKFLOW, templateDigest, workflowRun };
  const status = { run: { ...run, phase: RunPhase.RUNNING } };
  return create(store.HostRecordSchema, {
    host: { name: 'hosts/h1', uid: 'u1', status },
    runCount,
  });
}

/** The store goes back to when the host had had one run. */
function goBack(judge: WorkflowJudge): void {
  judge.reload();
  judge.reloaded(create(store.HostRecordSchema, { host: { uid: 'u1' }, runCount: 1n }));
  judge.restored(Number.POSITIVE_INFINITY);
}

/** The program of a recipe’s first script ends, under an order of run 2. */
function ending({ templateId, version, steps }: Recipe): WorkEvent {
  const title = steps.find(({ does }) => does === 'script')?.title ?? '';
  const place = { atMs: 0, machine: 'm1', boot: 'b1', operationId: 'u1/2/0/1' };
  return { ...place, templateId, version, title, act: 'ended', code: 0 };
}

test('a lost number may be given to another run, and what was lost still ends', () => {
  const { judge, found, work } = seen();
  goBack(judge);
  judge.changed(carrying(second));
  work.push(ending(first), ending(second));
  judge.look();
  expect(found).toEqual([]);
});

test('a run that was not lost keeps its template', () => {
  const { judge, found } = seen();
  judge.changed(carrying(second));
  expect(found).toEqual([expect.stringContaining('W5 hosts/h1/workflows/t1/runs/1: run 2 has')]);
});

test('the run that got the number keeps its template, too', () => {
  const { judge, found } = seen();
  goBack(judge);
  judge.changed(carrying(second));
  judge.changed(carrying(first));
  expect(found).toEqual([expect.stringContaining('has another template now')]);
});

test('an act that fits neither the lost run nor the new one is reported', () => {
  const { judge, found, work } = seen();
  goBack(judge);
  judge.changed(carrying(second));
  work.push({ ...ending(first), version: 99 });
  judge.look();
  expect(found).toEqual([expect.stringContaining('of version 99 is done')]);
});

test('a step that began soon after the restore may be repeated after later steps', () => {
  const { judge, found, work } = seen();
  judge.restored(1_000);
  const [one, two] = first.steps.filter(({ does }) => does === 'script');
  const begun = (title: string | undefined, atMs: number): WorkEvent => {
    return { ...ending(first), act: 'begun', title: title ?? '', atMs };
  };
  work.push(begun(one?.title, 500), begun(two?.title, 1_500), begun(one?.title, 2_000));
  judge.look();
  expect(two?.title).toBeDefined();
  expect(found.filter((text) => text.startsWith('W3'))).toEqual([]);
});
