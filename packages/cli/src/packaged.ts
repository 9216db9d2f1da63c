/** Files of packages beside the command. */
export { completionScripts } from './commands/self/completion.ts';
export { type ManPage, manPages } from './man.ts';
