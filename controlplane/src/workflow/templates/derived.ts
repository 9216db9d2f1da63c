/** Templates in API form: fields from the source, and its digest. Pure. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  sha256Hex,
  type Template,
  type TemplateStep,
  TemplateStepSchema,
  type TemplateVariable,
  TemplateVariableSchema,
} from '@rackwright/messages';
import {
  type ParsedStep,
  type ParsedVariable,
  parseTemplate,
  textSource,
} from '@rackwright/template';

/** SHA-256 of the source, lower-case hex: the digest that runs name. */
export function sourceSha256(source: string): string {
  return sha256Hex(new TextEncoder().encode(source));
}

/**
 * Fills in the fields derived from the source. A source that cannot be parsed is shown as it is.
 */
export function derive(template: Template): Template {
  template.digest = sourceSha256(template.source);
  const parsed = parseTemplate(template.source);
  const derived = parsed.kind === 'ok' ? parsed.template : undefined;
  template.description = derived?.description ?? '';
  template.variables = derived?.variables.map(variableOf) ?? [];
  template.steps = derived?.steps.map(stepOf) ?? [];
  return template;
}

/** Removes the derived fields, for the stored form. */
export function underived(template: Template): Template {
  template.etag = '';
  template.digest = '';
  template.builtIn = false;
  template.description = '';
  template.variables = [];
  template.steps = [];
  return template;
}

function variableOf(variable: ParsedVariable): TemplateVariable {
  const { name, type, description, default: text, values } = variable;
  return create(TemplateVariableSchema, {
    name,
    type,
    description,
    required: text === undefined,
    defaultValue: text === undefined ? '' : textSource(text),
    values: [...values],
  });
}

function stepOf(step: ParsedStep): TemplateStep {
  const { name, action, condition, timeoutMs, retries, onFailure, onTimeout } = step;
  const { handOff, destructive } = step;
  return create(TemplateStepSchema, {
    name,
    action,
    condition: condition?.text ?? '',
    ...(timeoutMs !== undefined && { timeout: durationFromMs(timeoutMs) }),
    retries,
    onFailure,
    onTimeout,
    handOff,
    destructive,
  });
}
