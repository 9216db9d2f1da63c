/** The limits of a template; REFERENCE.md repeats these numbers, and a test compares them. */

export const sourceBytesMax = 64 * 1024;
/** All arguments of all rendered steps together. */
export const renderedBytesMax = 48 * 1024;
/** Steps and handlers together. */
export const stepsMax = 100;
export const variablesMax = 50;
export const choicesMax = 50;
/** Maps and lists in each other. */
export const depthMax = 16;
export const problemsMax = 100;
export const retriesMax = 10;
export const stepTimeoutSecondsMax = 24 * 3_600;
export const templateTimeoutSecondsMax = 168 * 3_600;
export const waitSecondsMax = 24 * 3_600;
export const descriptionCharsMax = 500;
export const variableCharsMax = 4_096;
export const expressionCharsMax = 1_000;
/** Operators, calls and parentheses in each other. */
export const expressionDepthMax = 24;
export const environmentMax = 64;
export const commandArgumentsMax = 100;
export const headersMax = 32;
export const urlCharsMax = 2_048;
export const pathCharsMax = 1_024;
export const imageCharsMax = 512;
export const reasonCharsMax = 500;
export const bmcArgumentsMax = 32;
export const partitionMax = 128;
