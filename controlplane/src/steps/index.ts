/** Steps of cleaning: the built-in ones, and the plan that list and engine share. */
export {
  builtInSteps,
  type CleanPlan,
  cleanPlan,
  eraseMetadataStep,
  eraseStep,
} from './plan.ts';
