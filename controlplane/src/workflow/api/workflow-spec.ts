/** Validation of people's fields of workflows. */
import { durationMs } from '@bufbuild/protobuf/wkt';
import { invalidArgument, type WorkflowSpec } from '@rackwright/messages';
import {
  isVariableName,
  variableCharsMax,
  variableNameForm,
  variablesMax,
} from '@rackwright/template';
import { idProblem } from '../../call/names.ts';
import { quote, type Violations } from '../../call/violations.ts';
import { parseWorkflowName, type WorkflowId } from '../index.ts';

/** All variables together: the record has those of every run. */
const variablesBytesMax = 12 * 1024;
const minuteMs = 60_000;
const pendingTimeoutMsMax = 30 * 24 * 60 * minuteMs;

/** The fields of a workflow that an update may name. */
export const workflowPaths = [
  'spec',
  'spec.variables',
  'spec.disabled',
  'spec.pending_timeout',
] as const;

export function checkWorkflowSpec(field: string, spec: WorkflowSpec, violations: Violations): void {
  checkVariables(`${field}.variables`, spec.variables, violations);
  if (spec.pendingTimeout === undefined) return;
  const pendingMs = durationMs(spec.pendingTimeout);
  if (pendingMs >= minuteMs && pendingMs <= pendingTimeoutMsMax) return;
  violations.add(`${field}.pending_timeout`, 'must be from 1 minute to 30 days, or unset for 1 h');
}

/** Names and sizes; `not_runnable` says whether the template accepts them. */
export function checkVariables(
  field: string,
  variables: Readonly<Record<string, string>>,
  violations: Violations,
): void {
  const entries = Object.entries(variables);
  if (entries.length > variablesMax) {
    violations.add(field, `has ${entries.length} variables; at most ${variablesMax} are kept`);
    return;
  }
  let bytes = 0;
  for (const [name, value] of entries) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
    if (!isVariableName(name)) {
      violations.add(field, `has the name ${quote(name)}; a name has ${variableNameForm}`);
    } else if (value.length > variableCharsMax) {
      const description = `has ${value.length} characters; at most ${variableCharsMax} are kept`;
      violations.add(`${field}[${quote(name)}]`, description);
    }
  }
  if (bytes <= variablesBytesMax) return;
  violations.add(field, `has ${bytes} bytes together; at most ${variablesBytesMax} are kept`);
}

/** The workflow that `name` names. Throws `invalidArgument`. */
export function requireWorkflowName(name: string, field = 'name'): WorkflowId {
  const found = parseWorkflowName(name);
  if (found !== undefined) return found;
  throw invalidArgument([{ field, description: workflowNameProblem(name) ?? '' }]);
}

/** What is wrong with a workflow's name; undefined when it is valid. */
export function workflowNameProblem(name: string): string | undefined {
  if (parseWorkflowName(name) !== undefined) return undefined;
  const wanted = 'must name a workflow, as in "hosts/h1/workflows/set-clock"';
  return name === '' ? `is missing; it ${wanted}` : `is ${quote(name)}; it ${wanted}`;
}

/** What is wrong with the id of a workflow, which is that of its template. */
export function workflowIdProblem(text: string): string | undefined {
  const problem = idProblem(text);
  return problem === undefined ? undefined : `${problem}; it is the id of the template`;
}
