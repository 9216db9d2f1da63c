/** The control plane's stored templates. */
export { builtInPrefix, builtInSources } from './built-in.ts';
export { derive, sourceSha256, underived } from './derived.ts';
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
