/** The fleet's word; undefined: nothing has been let in. */
import type { TemplatePolicy } from '@rackwright/messages';
export type Policy = Omit<TemplatePolicy, '$typeName' | '$unknown'> | undefined;
