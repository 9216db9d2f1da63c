/** rackwright template … */
import { create } from '@bufbuild/protobuf';
import {
  ApiFailure,
  ListTemplatesResponseSchema,
  type Template,
  TemplateSchema,
  TemplateService,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import {
  idArgument,
  labelChange,
  labelChangeFlag,
  parseLabels,
  requestFlag,
  resourceName,
  type SharedFlags,
} from '../../flags.ts';
import { isForPrograms, printAs, printLines } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { showTemplate, summary } from '../../output/template.ts';
import { ago } from '../../output/time.ts';
import { allPages, callsOf } from '../frame/calls.ts';
import { sharedAliases as aliases, listCommand, sharedFlags as shared } from '../frame/frames.ts';
import { locatingProblems, readSource } from './source.ts';

const idPositional = idArgument('template', 'Id of the template');
const fileParameter = {
  parse: String,
  brief: 'File with the YAML, - for standard input',
  placeholder: 'file',
};
const idAndFile = {
  kind: 'tuple',
  parameters: [...idPositional.parameters, fileParameter],
} as const;
const labelFlag = {
  label: { kind: 'parsed', parse: String, variadic: true, optional: true, brief: 'NAME=VALUE' },
} as const;
/** The id for a text that is only validated. */
const checkId = 'only-checked';

interface ChangeFlags extends SharedFlags {
  readonly label?: readonly string[];
  readonly requestId: string;
}

const withTemplates = callsOf(TemplateService);

const createTemplate = buildCommand({
  docs: { brief: 'Save a template, or report each problem in it with its line' },
  parameters: {
    flags: { ...shared, ...labelFlag, ...requestFlag },
    positional: idAndFile,
    aliases,
  },
  async func(this: CliContext, flags: ChangeFlags, templateId: string, file: string) {
    const source = await readSource(this.io, file);
    const template = { source, labels: parseLabels(flags.label ?? []) };
    const { requestId } = flags;
    const made = await locatingProblems(this.io, file, () =>
      withTemplates(this.io, flags, (templates) =>
        templates.createTemplate({ templateId, template, requestId }),
      ),
    );
    showTemplate(this.io, flags.output, made);
  },
});

const updateTemplate = buildCommand({
  docs: { brief: 'Change a template; what is under way keeps what it was started with' },
  parameters: {
    flags: {
      ...shared,
      ...labelChangeFlag,
      etag: {
        kind: 'parsed',
        parse: String,
        default: '',
        brief: 'Refuse unless it still has this one',
      },
      ...requestFlag,
    },
    positional: idAndFile,
    aliases,
  },
  async func(this: CliContext, flags: ChangeFlags & { etag: string }, id: string, file: string) {
    const source = await readSource(this.io, file);
    const { etag, label, requestId } = flags;
    const labels = labelChange(label);
    const paths = ['source', ...labels.paths];
    const name = resourceName('templates', id);
    const template = { name, etag, source, labels: labels.set };
    const changed = await locatingProblems(this.io, file, () =>
      withTemplates(this.io, flags, (templates) =>
        templates.updateTemplate({ template, updateMask: { paths }, requestId }),
      ),
    );
    showTemplate(this.io, flags.output, changed);
  },
});

const checkTemplate = buildCommand({
  docs: { brief: 'Validate a template without saving it' },
  parameters: {
    flags: shared,
    positional: { kind: 'tuple', parameters: [fileParameter] },
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags, file: string) {
    const source = await readSource(this.io, file);
    const checked = await locatingProblems(this.io, file, () =>
      withTemplates(this.io, flags, (templates) =>
        templates
          .createTemplate({ templateId: checkId, template: { source }, validateOnly: true })
          // Problems of the source are reported before the name is looked at.
          .catch((error: unknown) => {
            if (error instanceof ApiFailure && error.error.kind === 'alreadyExists')
              return undefined;
            throw error;
          }),
      ),
    );
    if (isForPrograms(flags.output))
      printAs(this.io, flags.output, TemplateSchema, checked ?? create(TemplateSchema));
    else printLines(this.io, [`${file}: ${summary(checked)}`]);
  },
});

const getTemplate = buildCommand({
  docs: { brief: 'Show one template' },
  parameters: {
    flags: {
      ...shared,
      source: { kind: 'boolean', default: false, brief: 'Only its YAML, as it was written' },
    },
    positional: idPositional,
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & { source: boolean }, id: string) {
    const name = resourceName('templates', id);
    const template = await withTemplates(this.io, flags, (templates) =>
      templates.getTemplate({ name }),
    );
    if (flags.source) this.io.out.write(template.source);
    else showTemplate(this.io, flags.output, template);
  },
});

const listTemplates = listCommand({
  brief: 'List all templates, the built-in ones included',
  read: (io, flags) =>
    withTemplates(io, flags, (each) =>
      allPages(
        (pageToken) => each.listTemplates({ pageToken }),
        (page) => page.templates,
      ),
    ),
  schema: ListTemplatesResponseSchema,
  answer: (templates) => ({ templates }),
  columns,
});

const deleteTemplate = buildCommand({
  docs: { brief: 'Remove a template that no workflow uses' },
  parameters: {
    flags: {
      ...shared,
      keepRuns: {
        kind: 'boolean',
        default: false,
        brief: 'Although workflows use it: they and their runs stay as they are',
      },
      ...requestFlag,
    },
    positional: idPositional,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & { keepRuns: boolean; requestId: string },
    id: string,
  ) {
    const name = resourceName('templates', id);
    const { keepRuns, requestId } = flags;
    const gone = await withTemplates(this.io, flags, (templates) =>
      templates.deleteTemplate({ name, keepRuns, requestId }),
    );
    if (isForPrograms(flags.output)) printAs(this.io, flags.output, TemplateSchema, gone);
    else printLines(this.io, [`${name} deleted`]);
  },
});

/** All commands on templates. */
export const templateRoutes = buildRouteMap({
  routes: {
    create: createTemplate,
    get: getTemplate,
    list: listTemplates,
    update: updateTemplate,
    delete: deleteTemplate,
    check: checkTemplate,
  },
  docs: { brief: briefs.template },
});

function columns({ clock }: CommandIo): TextColumn<Template>[] {
  return [
    { title: 'NAME', value: ({ name }) => name },
    { title: 'STEPS', value: ({ steps }) => String(steps.length), dropOrder: 3 },
    {
      title: 'CHANGED',
      value: ({ builtIn, updateTime }) => (builtIn ? 'built in' : ago(clock, updateTime)),
      dropOrder: 2,
    },
    { title: 'DESCRIPTION', value: ({ description }) => description, widthMin: 20, dropOrder: 1 },
  ];
}
