/** The definitions of the operators' API, compiled by buf. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { referenceOf } from './reference.ts';

const root = join(import.meta.dirname, '../../..');
const outputBytesMax = 64 * 1024 * 1024;

export const referencePath = join(import.meta.dirname, '../REFERENCE.md');

/** The reference that follows from the present definitions. */
export function referenceText(): string {
  const buf = join(root, 'node_modules/.bin/buf');
  const args = ['build', '-o', '-', '--as-file-descriptor-set'];
  const options = { cwd: join(root, 'proto'), maxBuffer: outputBytesMax };
  const set = fromBinary(FileDescriptorSetSchema, execFileSync(buf, args, options));
  return referenceOf(set, 'rackwright.v1');
}
