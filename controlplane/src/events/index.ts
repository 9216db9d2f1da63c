/** Events: changes, derived from the records of the store, and their delivery. */
export { cursorKey, sinkUidOf } from './sinks/cursor.ts';
export { deadLettersBelow, deadLettersMax, deadLettersOf } from './sinks/dead-letters.ts';
export {
  attemptResults,
  type EventMeter,
  EventSinks,
  forgetSink,
  type SinkTarget,
  sinkTargets,
} from './sinks/event-sinks.ts';
export { webhookUrlProblem } from './sinks/webhook.ts';
