/** Plans: how they are kept, and how long they usually take. */
export { addUsualDurations } from './durations.ts';
export {
  isExpired,
  keepPlan,
  PlanSweeper,
  planLifeMs,
  plansPerHostMax,
  readPlan,
  sweepPlans,
} from './plans.ts';
