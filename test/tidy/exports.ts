/**
 * What product code exports, product code needs. An export that only tests use is dead code that
 * looks alive. Names decide: a use of another export of the same name counts.
 */
import { codeOf } from './code-text.ts';
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

const declaration =
  /^export (?:async )?(?:abstract )?(?:function\*?|const|let|class|interface|type) (\w+)/gm;
/** Hands a name on; that is no use of it. */
const handedOn = /^export (?:type )?\{[^}]*\} from/gm;

/** Code of tests that carries no name of it: machines and BMCs made of software. */
const testPackages = /^packages\/sim\//;

/**
 * Exports that serve tests on purpose, by their files: doubles, makers of what tests are given, and
 * lists that tests walk through. A name that has its use in the product is taken off.
 */
export const exportsForTests: Readonly<Record<string, readonly string[]>> = {
  'agent/src/runner-gateway/hand-offs.ts': ['noHandOffs'],
  'agent/src/runner-gateway/testing.ts': ['testSigner'],
  'controlplane/src/access/sign-in.ts': ['trustedSignIn'],
  'controlplane/src/host/diagram.ts': ['stateDiagram'],
  'controlplane/src/records/decoded.ts': ['freezeShared'],
  'packages/console/src/logic/sign-in-failure.ts': ['signInReasons'],
  'packages/erasure/src/signature.ts': ['publicKeyOf'],
  'packages/messages/src/failures.ts': ['hostRefusalNames', 'transientNames'],
  'packages/oci/src/disk/write.ts': ['writeHostIndex'],
  'packages/rpc/src/client/local-channel.ts': ['localChannel'],
  'packages/store/src/contract.ts': ['findWrite'],
  'packages/store/src/memory/store.ts': ['openMemoryStore'],
};

function isProduct(path: string): boolean {
  return !path.includes('/gen/') && !testPackages.test(path);
}

/** Exports of product code that no product code uses, but for those that may, and stale leave. */
export function findTestOnlyExports(
  files: readonly SourceFile[],
  allowed: Readonly<Record<string, readonly string[]>> = exportsForTests,
): Finding[] {
  const product = files
    .filter(({ path }) => !isTestCode(path))
    .map(({ path, text }) => ({ path, code: codeOf(text) }));
  const uses = new Map<string, number>();
  for (const { code } of product) {
    for (const [word] of code.replace(handedOn, '').matchAll(/\b[A-Za-z_]\w*\b/g)) {
      uses.set(word, (uses.get(word) ?? 0) + 1);
    }
  }
  return product.flatMap(({ path, code }) => {
    if (!isProduct(path)) return [];
    const mayServeTests = allowed[path] ?? [];
    const unused = [...code.matchAll(declaration)].filter(([, name]) => uses.get(name ?? '') === 1);
    const found = unused.flatMap(({ index, 1: name = '' }) => {
      if (mayServeTests.includes(name)) return [];
      const line = code.slice(0, index).split('\n').length;
      const cure = 'delete it, or move it to a test';
      return [{ path, line, message: `exports ${name}, which no product code uses; ${cure}` }];
    });
    const names = unused.map(([, name]) => name);
    const stale = mayServeTests.filter((name) => !names.includes(name));
    const message = (name: string) => `${name} has a use or is gone; take it off exportsForTests`;
    return [...found, ...stale.map((name) => ({ path, line: 0, message: message(name) }))];
  });
}
