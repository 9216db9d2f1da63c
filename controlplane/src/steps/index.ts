/** Steps of cleaning: what people may write, and the plan that list and engine share. */
export {
  type ArgumentProblem,
  argumentProblems,
  secondsOf,
  withDefaults,
} from './arguments.ts';
export { controlSteps } from './controls.ts';
export { ownArguments, ownStepProblems, ownSteps } from './own-steps.ts';
export {
  builtInSteps,
  type CleanPlan,
  cleanPlan,
  type Disabling,
  disablingOf,
  type KnownStep,
  type PlanInput,
} from './plan.ts';
export { type Policy } from './policy.ts';
export {
  type CommandImageResult,
  commandImageOf,
  policyProblems,
  type ReachingStep,
  reachProblem,
  urlProblem,
} from './reach.ts';
export { missingSecret, readSecrets, secretUses } from './step-secrets.ts';
export { callWebhook, isJson } from './webhook-call.ts';
