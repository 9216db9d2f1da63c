export {
  builtInSteps,
  type CleanPlan,
  cleanPlan,
  eraseMetadataStep,
  eraseStep,
} from './plan.ts';
