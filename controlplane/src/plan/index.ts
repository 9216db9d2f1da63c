/** Plans: how they are kept, and how long they usually take. */
export { addUsualDurations } from './durations.ts';
export {
  isExpired,
  keepPlan,
  planLifeMs,
  plansPerHostMax,
  readPlan,
  sweepPlans,
  sweepRegularly,
} from './plans.ts';
