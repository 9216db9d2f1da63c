/** What people do with templates and workflows at random, each act one call of the API. */
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { Act, Scene } from '../operators/acts.ts';
import { keptHosts } from '../operators/records.ts';
import type { WorldView } from '../view.ts';
import { neededVariable, shapesCount } from './recipes.ts';

const templateIds = ['t1', 't2'] as const;
/** Whoever waits longer than that to start is timed out. */
const pendingTimeouts = [60_000, 600_000] as const;

/** A template of the two, and its workflow on the host; mostly such as there are. */
function chosen({ view, host, pick }: Scene, wanted: 'template' | 'workflow' | 'any' = 'any') {
  const below = wanted === 'template' ? 'templates' : `workflows.${host.id}`;
  const there = view
    .storeDisk()
    .lastChanges(below)
    .filter(({ kind }) => kind === 'put');
  const known = templateIds.filter((each) => there.some(({ key }) => key === `${below}.${each}`));
  const isKnown = wanted !== 'any' && known.length > 0 && pick([true, true, true, false]);
  const id = pick(isKnown ? known : templateIds);
  return { id, template: `templates/${id}`, name: `${host.host.name}/workflows/${id}` };
}

const variables = ({ pick }: Scene): Record<string, string> =>
  pick([{}, {}, {}, { [neededVariable]: 'given' }]);

const act = (name: string, weight: number, prepare: Act['prepare']): Act => ({
  ...{ name, weight, prepare },
});

function shapeOf({ pick }: Scene): number {
  return pick(Array.from({ length: shapesCount }, (_, shape) => shape));
}

/** Acts of authors and of those who run what they write; among the others in their weight. */
export const workflowActs: readonly Act[] = [
  act('write a template', 8, (scene) => {
    const { id: templateId } = chosen(scene);
    const { source } = scene.view.book.write(templateId, shapeOf(scene));
    const request = { templateId, template: { source }, requestId: scene.requestId };
    return ({ templates }) => templates.createTemplate(request);
  }),
  act('edit a template', 6, (scene) => {
    const { id, template: name } = chosen(scene, 'template');
    const { source } = scene.view.book.write(id, shapeOf(scene));
    const updateMask = { paths: ['source'] };
    const request = { template: { name, source }, updateMask, requestId: scene.requestId };
    return ({ templates }) => templates.updateTemplate(request);
  }),
  act('delete a template', 1, (scene) => {
    const { template: name } = chosen(scene);
    const { pick, requestId } = scene;
    const request = { name, keepRuns: pick([false, true]), requestId };
    return ({ templates }) => templates.deleteTemplate(request);
  }),
  act('make a workflow', 14, (scene) => {
    const { id: workflowId } = chosen(scene, 'template');
    const { host, pick, requestId } = scene;
    const pendingTimeout = durationFromMs(pick(pendingTimeouts));
    const spec = { variables: variables(scene), disabled: pick([false, false, false, true]) };
    const workflow = { spec: { ...spec, pendingTimeout } };
    const request = { parent: host.host.name, workflowId, workflow, requestId };
    return ({ workflows }) => workflows.createWorkflow(request);
  }),
  act('run a workflow', 30, (scene) => {
    const request = { name: chosen(scene, 'workflow').name, requestId: scene.requestId };
    return ({ workflows }) => workflows.runWorkflow(request);
  }),
  act('cancel a workflow', 3, (scene) => {
    const { requestId } = scene;
    const request = { name: chosen(scene, 'workflow').name, reason: 'another idea', requestId };
    return ({ workflows }) => workflows.cancelWorkflow(request);
  }),
  act('change a workflow', 5, (scene) => {
    const { name } = chosen(scene, 'workflow');
    const [path, spec] = scene.pick([
      ['spec.disabled', { disabled: true }],
      ['spec.disabled', { disabled: false }],
      ['spec.disabled', { disabled: false }],
      ['spec.variables', { variables: variables(scene) }],
    ] as const);
    const updateMask = { paths: [path] };
    const request = { workflow: { name, spec }, updateMask, requestId: scene.requestId };
    return ({ workflows }) => workflows.updateWorkflow(request);
  }),
  act('delete a workflow', 3, (scene) => {
    const request = { name: chosen(scene).name, requestId: scene.requestId };
    return ({ workflows }) => workflows.deleteWorkflow(request);
  }),
  act('look at a workflow', 2, (scene) => {
    const { name } = chosen(scene);
    return ({ workflows }) => workflows.explainWorkflow({ name });
  }),
  act('resume what waits for a person', 6, ({ host, requestId, pick }) => {
    const request = { name: host.host.name, reason: 'looked', requestId };
    const skips = pick([false, false, true]);
    return ({ hosts }) => (skips ? hosts.skipStep(request) : hosts.resumeRun(request));
  }),
  act('abort', 2, ({ host, requestId }) => {
    const request = { name: host.host.name, reason: 'enough', requestId };
    return ({ hosts }) => hosts.abortRun(request);
  }),
];

const batchIds = ['b1', 'b2', 'b3'] as const;

/** Acts of those who run a template on many hosts. */
const batchActs: readonly Act[] = [
  act('make a batch', 14, (scene) => {
    const { view, pick, requestId } = scene;
    const { template } = chosen(scene, 'template');
    const names = keptHosts(view).flatMap(({ host }) =>
      pick([true, true, false]) ? host.name : [],
    );
    const hosts = names.length === 0 || pick([true, false]) ? { rack: 'racks/r1' } : { names };
    const spec = {
      ...{ template, hosts, variables: variables(scene), maxParallel: pick([1, 2, 2, 3]) },
      maxFailures: pick([0, 0, 1, 2]),
    };
    const request = { workflowBatchId: pick(batchIds), workflowBatch: { spec }, requestId };
    return ({ batches }) => batches.createWorkflowBatch(request);
  }),
  act('cancel a batch', 3, ({ pick, requestId }) => {
    const request = { name: `workflowBatches/${pick(batchIds)}`, reason: 'not so', requestId };
    return ({ batches }) => batches.cancelWorkflowBatch(request);
  }),
  act('delete a batch', 3, ({ pick }) => {
    const request = { name: `workflowBatches/${pick(batchIds)}` };
    return ({ batches }) => batches.deleteWorkflowBatch(request);
  }),
  act('look at a batch', 2, ({ pick }) => {
    const request = { name: `workflowBatches/${pick(batchIds)}` };
    return ({ batches }) => batches.getWorkflowBatch(request);
  }),
];

/** What such people do in this world; nothing where there are none. */
export function actsOfAuthors(view: WorldView): readonly Act[] {
  if (!view.workflows) return [];
  return view.batches ? [...workflowActs, ...batchActs] : workflowActs;
}
