/** The fleet's policy; undefined: nothing is permitted. */
import type { TemplatePolicy } from '@rackwright/messages';
export type Policy = Omit<TemplatePolicy, '$typeName' | '$unknown'> | undefined;
