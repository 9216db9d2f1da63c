/** Writes REFERENCE.md from `proto/`; a part of `npm run gen`. */
import { writeFileSync } from 'node:fs';
import { referencePath, referenceText } from './definitions.ts';

writeFileSync(referencePath, referenceText());
