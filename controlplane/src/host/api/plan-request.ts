/** Converts a plan request into the host request that would start the run. */
import { clone } from '@bufbuild/protobuf';
import {
  DeletionMode,
  failedPrecondition,
  type Host,
  HostState,
  type PlanRunRequest,
  PlanRunRequestSchema,
} from '@rackwright/messages';
import { isKnown, nameProblem, requireName } from '../../call/names.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { Violations } from '../../call/violations.ts';
import { checkVariables } from '../../workflow/api/workflow-spec.ts';
import { type NextRun, nextRun, type WorkflowId } from '../../workflow/index.ts';
import type { HostSnapshot, PlannableRequest } from '../index.ts';
import { imageByDigest } from '../spec/image-by-digest.ts';
import { checkDeployment, deployRequest } from './deploy-request.ts';
import { stepsOf } from './host-requests.ts';

/** A request that depends on the present host. */
export interface PlanSource {
  /** Throws why there is nothing to plan. */
  request(host: HostOfPlan, snapshot: Pick<HostSnapshot, 'facts'>): PlannableRequest;
  /** The present refusal, beyond the host's own ones; undefined: none. */
  readonly refusal: NextRun['refusal'];
}

type HostOfPlan = Parameters<Awaited<ReturnType<typeof nextRun>>['render']>[0];

type PlannedWorkflow = Extract<PlanRunRequest['run'], { readonly case: 'workflow' }>;

/** Throws `invalidArgument` for an invalid or empty request. */
export async function readPlanRequest(
  deps: RpcDependencies,
  planRequest: PlanRunRequest,
): Promise<PlanSource> {
  const { run } = planRequest;
  if (run.case === 'workflow') return askedWorkflow(deps, workflowOf(planRequest, run), run.value);
  const request = plainRequest(run);
  return { request: (host) => forHost(request, host), refusal: undefined };
}

/** The planned run, with the image by its digest: a tag is resolved once. */
export async function resolvePlan(
  deps: RpcDependencies,
  request: PlanRunRequest,
): Promise<PlanRunRequest> {
  if (request.run.case !== 'provision') return request;
  checkDeployment(request.run.value, 'provision.');
  const image = await imageByDigest(deps, request.run.value.image, 'provision.image');
  const resolved = clone(PlanRunRequestSchema, request);
  if (resolved.run.case === 'provision') resolved.run.value.image = image;
  return resolved;
}

/** A deployment of a host in service replaces its image. */
export function forHost<R extends { readonly kind: string }>(
  request: R,
  { status }: Pick<Host, 'status'>,
): R {
  if (request.kind !== 'provision' || status?.state !== HostState.PROVISIONED) return request;
  return { ...request, kind: 'reimage' };
}

/** Plans that concern only the host. */
export function plainRequest(
  run: Exclude<PlanRunRequest['run'], PlannedWorkflow>,
): Exclude<PlannableRequest, { kind: 'workflow' }> {
  switch (run.case) {
    case 'clean':
      return { kind: 'clean', steps: stepsOf(run.value.steps, 'clean.steps') };
    case 'provision':
      checkDeployment(run.value, 'provision.');
      return deployRequest('provision', run.value.image, run.value.deploy);
    case 'delete': {
      const { mode } = run.value;
      const violations = new Violations();
      if (!isKnown(DeletionMode, mode)) violations.add('delete.mode', 'must be normal or force');
      violations.throwIfAny();
      return { kind: 'delete', mode: mode || DeletionMode.NORMAL, reason: '' };
    }
    default: {
      const violations = new Violations();
      violations.add('run', 'is missing; it must be clean, provision, delete or workflow');
      violations.throwIfAny();
      throw new Error('a violation has been thrown');
    }
  }
}

/** The workflow of a plan. Throws `invalidArgument`. */
export function workflowOf({ parent }: PlanRunRequest, { value }: PlannedWorkflow): WorkflowId {
  const violations = new Violations();
  violations.addIf('workflow.template', nameProblem('templates', value.template));
  checkVariables('workflow.variables', value.variables, violations);
  violations.throwIfAny();
  const hostId = requireName('hosts', parent, 'parent');
  return { hostId, templateId: requireName('templates', value.template) };
}

async function askedWorkflow(
  deps: RpcDependencies,
  id: WorkflowId,
  { variables }: PlannedWorkflow['value'],
): Promise<PlanSource> {
  const { render, refusal } = await nextRun(deps, id, variables);
  return {
    refusal,
    request: (host, { facts }) => {
      const rendering = render(host, facts);
      if (rendering.kind === 'ok') return rendering.order;
      throw failedPrecondition('TEMPLATE_DOES_NOT_FIT', rendering.text, {
        resource: `templates/${id.templateId}`,
      });
    },
  };
}
