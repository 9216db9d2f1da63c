/** The result of a final report, as metrics name it. */
export type VerdictWord = 'applied' | 'duplicate' | 'stale' | 'refused';

/** Called for each answer to a final report: how long it took from the report's arrival. */
export type AcknowledgementMeter = (answer: VerdictWord, seconds: number) => void;
