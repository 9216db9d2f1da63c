/** The control plane's stored templates. */
export { builtInPrefix, builtInSources } from './built-in.ts';
export { derive, digestOf, underived } from './derived.ts';
export { templateHostOf } from './host.ts';
export {
  builtInRevision,
  builtInTemplate,
  type KeptTemplate,
  readTemplate,
  readTemplateDigest,
  readTemplateRecord,
  templateKey,
} from './read.ts';
