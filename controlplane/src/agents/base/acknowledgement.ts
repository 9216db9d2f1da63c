/** The result of a final report, as metrics name it. */
export type AnswerWord = 'applied' | 'duplicate' | 'stale' | 'refused';

/** Called for each answer to a final report: how long it took from the report's arrival. */
export type AcknowledgementMeter = (answer: AnswerWord, seconds: number) => void;
