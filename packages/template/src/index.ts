/** Templates: read, checked and rendered. Pure. */
export { directoryProblem, environmentName, imageProblem } from './checks.ts';
export { conditionHolds } from './condition.ts';
export {
  commandArgumentsMax,
  descriptionCharsMax,
  environmentMax,
  retriesMax,
  stepTimeoutSecondsMax,
  variableCharsMax,
  variablesMax,
} from './limits.ts';
export { parseTemplate } from './parse.ts';
export type { Problem } from './problems.ts';
export { renderTemplate } from './render.ts';
export { textSource } from './text.ts';
export type {
  Action,
  ParsedStep,
  ParsedTemplate,
  ParsedVariable,
  ParseResult,
  RenderedStep,
  RenderedTemplate,
  RenderResult,
  RenderScope,
  StepOutcome,
  TemplateDisk,
  TemplateHost,
  TemplateInterface,
} from './types.ts';
export { isVariableName, variableNameForm } from './variables.ts';
