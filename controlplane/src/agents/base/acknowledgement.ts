/** What becomes of a final report, as figures name it. */
export type AnswerWord = 'applied' | 'duplicate' | 'stale' | 'refused';

/** Told of each answer to a final report: how long it took from the report's arrival. */
export type AcknowledgementMeter = (answer: AnswerWord, seconds: number) => void;
