/**
 * The cleaning plan of a host: which steps run, in which order, and why the others do not.
 * `ListCleanSteps` and the engine use the same pure function, so that the list matches what runs.
 */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  burnInDiskStep,
  type CleaningPolicy,
  type CleanStep,
  CleanStepSchema,
  cleanSteps,
  ErasureLevel,
  eraseMetadataStep,
  eraseStep,
  type FleetSpec,
  isErasure,
  type OwnCleanStep,
} from '@rackwright/messages';
import { describedArguments, isMandatory } from './arguments.ts';

/** Interfaces from first to last among steps of the same priority. */
const interfaceOrder = [
  ...['vendor', 'power', 'management', 'firmware', 'burnin', 'deploy', 'bios', 'raid'],
];

/** The steps of the runner that comes with this control plane, known before any runner reports. */
export const builtInSteps: readonly agent.StepDescription[] = Object.values(cleanSteps).map(
  (description) => create(agent.StepDescriptionSchema, description),
);

/**
 * A step and its provider: the rack's agent out of band, the runner on the host, or the fleet with
 * a program of its own.
 */
export type KnownStep =
  | { readonly description: agent.StepDescription; readonly source: 'agent' | 'runner' }
  | {
      readonly description: agent.StepDescription;
      readonly source: 'fleet';
      readonly own: OwnCleanStep;
    };

/** All inputs of a host's plan. */
export interface PlanInput {
  readonly known: readonly KnownStep[];
  readonly policy?: CleaningPolicy | undefined;
  /** The value of the host's label "pool"; empty: none. */
  readonly pool?: string | undefined;
  readonly fleet?: FleetSpec | undefined;
}

export interface CleanPlan {
  /** In the order in which they run. */
  readonly enabled: readonly CleanStep[];
  readonly disabled: readonly CleanStep[];
  readonly warnings: readonly string[];
}

type Overrides = Readonly<Record<string, number>>;

/** One level at which people set priorities. */
interface Layer {
  readonly from: 'host' | 'pool' | 'fleet';
  /** Its name in reasons and warnings. */
  readonly called: string;
  readonly overrides: Overrides;
}

/** The automatic plan. */
export function cleanPlan(input: PlanInput): CleanPlan {
  const layers = layersOf(input);
  const steps = input.known.map((step) => plannedStep(step, layers, input.policy?.level));
  const names = new Set(input.known.map(({ description }) => description.name));
  const warnings = layers.flatMap(({ called, overrides }) =>
    Object.keys(overrides)
      .filter((name) => !names.has(name))
      .sort()
      .map((name) => `${called} names ${name}, which is no known step`),
  );
  const byPriority = steps.filter((step) => step.enabled).sort(runsBefore);
  const late = writersAfterErasure(byPriority);
  return {
    enabled: beforeErasure(byPriority, late),
    disabled: steps.filter((step) => !step.enabled).sort(runsBefore),
    warnings: [...warnings, ...late.map(lateWarning)],
  };
}

/** Steps that may write to disks and whose priority puts them after the first erasure. */
function writersAfterErasure(byPriority: readonly CleanStep[]): readonly CleanStep[] {
  const first = byPriority.findIndex(({ name }) => isErasure(name));
  if (first === -1) return [];
  return byPriority.slice(first).filter((step) => isOwn(step) || step.name === burnInDiskStep);
}

function isOwn({ own }: CleanStep): boolean {
  return own !== undefined;
}

/** A program, or a burn-in, leaves data that must still be erased (DESIGN §5). */
function beforeErasure(
  byPriority: readonly CleanStep[],
  late: readonly CleanStep[],
): readonly CleanStep[] {
  if (late.length === 0) return byPriority;
  const others = byPriority.filter((step) => !late.includes(step));
  const first = others.findIndex(({ name }) => isErasure(name));
  return [...others.slice(0, first), ...late, ...others.slice(first)];
}

function lateWarning(step: CleanStep): string {
  const why = isOwn(step)
    ? 'no program of your own runs on disks that are erased'
    : 'what it writes is erased';
  const { name, priority } = step;
  const late = `${name} has priority ${priority}, behind the erasure`;
  return `${late}: it runs right before that all the same, for ${why}`;
}

/** The first level that names a step decides. */
function layersOf({ policy, pool = '', fleet }: Omit<PlanInput, 'known'>): readonly Layer[] {
  const ofPool = fleet?.pools.find((each) => pool !== '' && each.pool === pool);
  return [
    { from: 'host', called: 'priority_overrides', overrides: policy?.priorityOverrides ?? {} },
    {
      from: 'pool',
      called: `priority_overrides of the pool "${pool}"`,
      overrides: ofPool?.priorityOverrides ?? {},
    },
    {
      from: 'fleet',
      called: 'priority_overrides of the fleet',
      overrides: fleet?.priorityOverrides ?? {},
    },
  ];
}

/** The level at which people disable a step in automatic cleans. */
export interface Disabling {
  readonly from: Layer['from'];
  /** The value of the host's label "pool"; empty: none. */
  readonly pool: string;
}

/** Who sets the priority of a step to 0, if that is why it does not run; or undefined. */
export function disablingOf(step: string, input: Omit<PlanInput, 'known'>): Disabling | undefined {
  const layer = layersOf(input).find(({ overrides }) => overrides[step] !== undefined);
  if (layer?.overrides[step] !== 0) return undefined;
  return { from: layer.from, pool: input.pool ?? '' };
}

function plannedStep(
  known: KnownStep,
  layers: readonly Layer[],
  level: ErasureLevel | undefined,
): CleanStep {
  const { description: step, source } = known;
  const { priority, priorityFrom, reason } = priorityOf(step, layers, level);
  const needed = describedArguments(step).filter(isMandatory);
  const lacks = needed.map(({ name }) => name).join(', ');
  const why = lacks === '' ? reason : `it needs ${lacks}: it runs only when asked for with that`;
  const enabled = priority > 0 && lacks === '';
  return create(CleanStepSchema, {
    name: step.name,
    priority,
    priorityFrom,
    enabled,
    disabledReason: enabled ? '' : priority > 0 ? why : reason,
    source,
    rerunClass: step.rerunClass,
    // R8: an unspecified step counts as destructive.
    destructive: step.destructive !== false,
    abortable: step.abortable,
    description: step.description,
    arguments: { ...step.arguments },
    typedArguments: describedArguments(step),
    rebootAfter: step.rebootAfter,
    needsRamdisk: source !== 'agent',
    ...(known.source === 'fleet' ? { own: known.own } : {}),
  });
}

interface Priority {
  readonly priority: number;
  readonly priorityFrom: Layer['from'] | 'level' | 'step';
  /** Why it does not run automatically, when the priority is 0. */
  readonly reason: string;
}

/** Host before pool before fleet; then the policy's level, then the step's own priority. */
function priorityOf(
  step: agent.StepDescription,
  layers: readonly Layer[],
  level: ErasureLevel | undefined,
): Priority {
  for (const { from, called, overrides } of layers) {
    const priority = overrides[step.name];
    if (priority === undefined) continue;
    return { priority, priorityFrom: from, reason: `${called} sets its priority to 0` };
  }
  const byLevel = priorityByLevel(step, level);
  if (byLevel !== undefined) return byLevel;
  const reason = 'its priority is 0: it runs only when asked for';
  return { priority: step.priority, priorityFrom: 'step', reason };
}

/** The policy's level decides which of the two erasures is automatic. */
function priorityByLevel(
  step: agent.StepDescription,
  level: ErasureLevel | undefined,
): Priority | undefined {
  if (level !== ErasureLevel.METADATA_ONLY) return undefined;
  const reason = 'the cleaning policy asks for metadata only';
  if (step.name === eraseStep) return { priority: 0, priorityFrom: 'level', reason };
  if (step.name !== eraseMetadataStep) return undefined;
  return { priority: cleanSteps[eraseStep].priority, priorityFrom: 'level', reason: '' };
}

function runsBefore(a: CleanStep, b: CleanStep): number {
  return (
    b.priority - a.priority ||
    interfaceRank(a.name) - interfaceRank(b.name) ||
    (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)
  );
}

function interfaceRank(name: string): number {
  const rank = interfaceOrder.indexOf(name.split('.', 1)[0] ?? '');
  return rank === -1 ? interfaceOrder.length : rank;
}
