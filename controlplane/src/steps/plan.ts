/**
 * The cleaning plan of a host: which steps run, in which order, and why the others do not. One
 * pure function serves `ListCleanSteps` and the engine, so that what is listed is what runs.
 */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  type CleaningPolicy,
  type CleanStep,
  CleanStepSchema,
  ErasureLevel,
  RerunClass,
} from '@rackwright/api';

/** Interfaces from first to last among steps of the same priority. */
const interfaceOrder = ['vendor', 'power', 'management', 'firmware', 'deploy', 'bios', 'raid'];

export const eraseStep = 'deploy.erase_devices';
export const eraseMetadataStep = 'deploy.erase_devices_metadata';

/** Priority that an erasure has in the automatic plan. */
const erasePriority = 10;

/** The steps of the runner that comes with this control plane, known before any runner reports. */
export const builtInSteps: readonly agent.StepDescription[] = [
  create(agent.StepDescriptionSchema, {
    name: eraseStep,
    priority: erasePriority,
    rerunClass: RerunClass.CHECK_FIRST,
    destructive: true,
    abortable: false,
    description: 'Erase every disk of the host by the strongest method it offers, and verify it.',
  }),
  create(agent.StepDescriptionSchema, {
    name: eraseMetadataStep,
    priority: 0,
    rerunClass: RerunClass.SAFE,
    destructive: true,
    abortable: false,
    description: 'Erase partition tables and signatures only: the named weaker level.',
  }),
];

export interface CleanPlan {
  /** In the order in which they run. */
  readonly enabled: readonly CleanStep[];
  readonly disabled: readonly CleanStep[];
  readonly warnings: readonly string[];
}

/** The automatic plan. `known` are the runner's own descriptions, or the built-in ones. */
export function cleanPlan(
  policy: CleaningPolicy | undefined,
  known: readonly agent.StepDescription[],
): CleanPlan {
  const overrides = policy?.priorityOverrides ?? {};
  const steps = known.map((step) => plannedStep(step, policy));
  const names = new Set(known.map((step) => step.name));
  const warnings = Object.keys(overrides)
    .filter((name) => !names.has(name))
    .sort()
    .map((name) => `priority_overrides names ${name}, which is no known step`);
  return {
    enabled: steps.filter((step) => step.enabled).sort(runsBefore),
    disabled: steps.filter((step) => !step.enabled).sort(runsBefore),
    warnings,
  };
}

function plannedStep(step: agent.StepDescription, policy: CleaningPolicy | undefined): CleanStep {
  const override = policy?.priorityOverrides[step.name];
  const level = priorityByLevel(step, policy?.level);
  const priority = override ?? level.priority;
  return create(CleanStepSchema, {
    name: step.name,
    priority,
    enabled: priority > 0,
    disabledReason: priority > 0 ? '' : disabledReason(override, level.reason),
    source: 'runner',
    rerunClass: step.rerunClass,
    // R8: who does not say counts as destructive.
    destructive: step.destructive !== false,
    abortable: step.abortable,
    description: step.description,
    arguments: { ...step.arguments },
  });
}

/** The policy's level decides which of the two erasures is automatic. */
function priorityByLevel(
  step: agent.StepDescription,
  level: ErasureLevel | undefined,
): { readonly priority: number; readonly reason: string } {
  const metadataOnly = level === ErasureLevel.METADATA_ONLY;
  if (step.name === eraseStep && metadataOnly) {
    return { priority: 0, reason: 'the cleaning policy asks for metadata only' };
  }
  if (step.name === eraseMetadataStep && metadataOnly) {
    return { priority: erasePriority, reason: '' };
  }
  return { priority: step.priority, reason: 'its priority is 0: it runs only when asked for' };
}

function disabledReason(override: number | undefined, reason: string): string {
  return override === undefined ? reason : 'priority_overrides sets its priority to 0';
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
