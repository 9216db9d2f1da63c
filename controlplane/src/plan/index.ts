/** Plans: how they are stored, and their usual durations. */
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
