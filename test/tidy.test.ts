/** The style of the repository as tests; `test/tidy/` holds the checks and their own tests. */
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { stateDiagram } from '@rackwright/controlplane';
import { expect, test } from 'vitest';
import { findBans } from './tidy/bans.ts';
import { brandsOf, findForgedBrands } from './tidy/brands.ts';
import { findDroppedCauses } from './tidy/caught.ts';
import { findStaleFileNames, pathEndsOf } from './tidy/cited-files.ts';
import {
  findLooseVersions,
  findUndeclared,
  needsOf,
  type PackageManifest,
} from './tidy/dependencies.ts';
import {
  diagramBlock,
  diagramIn,
  findBrokenLinks,
  findLooseAnchors,
  findLooseCitations,
  findUnlistedSections,
} from './tidy/documents.ts';
import { findDroppedErrors } from './tidy/dropped.ts';
import { findTestOnlyExports } from './tidy/exports.ts';
import { findStairs } from './tidy/floors.ts';
import { findDependencyFaults, findFolderFaults, findMissingPaths } from './tidy/folder-tables.ts';
import { findMissingHeader } from './tidy/headers.ts';
import { findPlainIds } from './tidy/ids.ts';
import { describeGraph, findDead, findEscapes, workspaceOf } from './tidy/imports.ts';
import { findLayerFaults } from './tidy/layers.ts';
import { findLockFaults } from './tidy/lock-file.ts';
import { findNames, findSharedNames } from './tidy/names.ts';
import {
  findOtherFallbacks,
  findOtherVersions,
  newestVersion,
  type Versioned,
} from './tidy/release.ts';
import { findSizes } from './tidy/sizes.ts';
import {
  describeFinding,
  type Finding,
  isTestCode,
  isTypeScript,
  readSources,
  repositoryPaths,
  root,
  type SourceFile,
} from './tidy/sources.ts';
import { findSwitches } from './tidy/switches.ts';
import { findWaits } from './tidy/waits.ts';
import { tiersOf } from './tiers.ts';

const paths = repositoryPaths();
const code = readSources(paths.filter(isTypeScript));

function allOf(check: (file: SourceFile) => Finding[], files = code): string[] {
  return files.flatMap(check).map(describeFinding);
}

test('the checks see the code of every kind of workspace', () => {
  for (const folder of ['packages/', 'agent/', 'controlplane/', 'test/']) {
    expect(code.some(({ path }) => path.startsWith(folder))).toBe(true);
  }
});

test('the repository has no banned call or word', () => {
  expect(allOf(findBans)).toEqual([]);
});

test('no test has a wait that may never end, or that fails without a message', () => {
  expect(allOf(findWaits)).toEqual([]);
});

test('no name is meaningless', () => {
  expect(allOf(findNames)).toEqual([]);
});

test('the repository has no two exported types of one name', () => {
  expect(findSharedNames(code).map(describeFinding)).toEqual([]);
});

test('no log line drops the cause of a caught error', () => {
  expect(allOf(findDroppedCauses)).toEqual([]);
});

test('product code drops no error without a reason that a reader can see', () => {
  expect(allOf(findDroppedErrors)).toEqual([]);
});

/** Brands that must stay: an id among them takes no plain text or number any more. */
const brandsHeld = [
  ...[
    'Actor',
    'AgentSessionId',
    'DeploymentId',
    'Digest',
    'Mac',
    'PoolId',
    'Revision',
    'RunNumber',
  ],
  ...['TemplateId', 'TokenId', 'WorkflowRunNumber', 'WorkflowUid', 'WriteId'],
];

test('the repository makes branded texts only where they are checked', () => {
  const brands = brandsOf(code);
  expect([...brands.keys()]).toEqual(expect.arrayContaining(brandsHeld));
  expect(allOf((file) => findForgedBrands(file, brands))).toEqual([]);
});

test('the repository declares no id as any text', () => {
  expect(allOf(findPlainIds)).toEqual([]);
});

test('the repository calls no function with a switch that has no name', () => {
  expect(allOf(findSwitches)).toEqual([]);
});

test('no file, test or line is over its size', () => {
  expect(allOf(findSizes)).toEqual([]);
});

test('each module says at its top what it is for', () => {
  expect(allOf(findMissingHeader)).toEqual([]);
});

test('imports other workspaces by name only', () => {
  expect(allOf(findEscapes)).toEqual([]);
});

test('the repository keeps folders that stand in an order in that order', () => {
  expect(allOf(findStairs)).toEqual([]);
});

test('imports go downward only, and touch the world only where permitted', () => {
  expect(allOf(findLayerFaults)).toEqual([]);
});

test('each file is imported or started', () => {
  const starting = ['package.json', '.ci/run', 'test/bootstrap.mjs'];
  const mentions = paths.filter((path) => starting.some((name) => path.endsWith(name)));
  expect(findDead(code, readSources(mentions)).map(describeFinding)).toEqual([]);
});

test('every test file runs in exactly one tier', () => {
  const tests = code.filter(({ path }) => path.endsWith('.test.ts'));
  const misplaced = tests.filter(({ path }) => tiersOf(path).length !== 1);
  expect(misplaced.map(({ path }) => path)).toEqual([]);
  expect(tiersOf('test/elsewhere/a.test.ts')).toEqual([]);
  expect(tiersOf('test/lab/a.peer.test.ts')).toEqual(['system']);
});

test('no module exports a name that only tests use', () => {
  expect(findTestOnlyExports(code).map(describeFinding)).toEqual([]);
});

test('the repository has the dependencies that the golden graph shows', async () => {
  await expect(describeGraph(code)).toMatchFileSnapshot('dependency-graph.txt');
});

test('the repository declares in each workspace what it imports, in one version', () => {
  const read = (path: string): PackageManifest =>
    JSON.parse(readFileSync(join(root, path), 'utf8'));
  const top = read('package.json');
  const manifestPaths = paths.filter((path) => path.endsWith('/package.json'));
  const faults = manifestPaths.flatMap((path) =>
    findUndeclared(read(path), needsOf(workspaceOf(path), code), top),
  );
  expect(faults).toEqual([]);
  expect(findLooseVersions([top, ...manifestPaths.map(read)])).toEqual([]);
});

test('a module that is imported for its effect alone is listed in its manifest', () => {
  // A bundle leaves such an import out, unless package.json says that the module has an effect.
  const missing = code.flatMap(({ path, text }) => {
    if (path.includes('/console/') || isTestCode(path)) return [];
    return [...text.matchAll(/^import '(\.[^']+)';$/gm)].flatMap(([, specifier = '']) => {
      const module = posix.join(posix.dirname(path), specifier);
      const workspace = /^(packages\/[^/]+|agent|controlplane)(?=\/)/.exec(path)?.[0] ?? '';
      const { sideEffects } = JSON.parse(
        readFileSync(join(root, workspace, 'package.json'), 'utf8'),
      ) as { readonly sideEffects?: boolean | readonly string[] };
      const kept = Array.isArray(sideEffects) ? sideEffects : [];
      return kept.includes(`./${posix.relative(workspace, module)}`) ? [] : [`${path}: ${module}`];
    });
  });
  expect(missing).toEqual([]);
});

test('all packages have one version', () => {
  const read = (path: string): Versioned => JSON.parse(readFileSync(join(root, path), 'utf8'));
  const { version = '' } = read('package.json');
  const manifests = paths.filter((path) => /(^|\/)package\.json$/.test(path)).map(read);
  expect(findOtherVersions(manifests, version)).toEqual([]);
  const programs = code.filter(({ path }) => path.endsWith('/version.ts'));
  expect(programs).toHaveLength(4);
  expect(allOf((file) => findOtherFallbacks(file, version), programs)).toEqual([]);
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  expect(newestVersion(changelog).version).toBe(version);
});

test('the repository has no link in a README that leads nowhere', () => {
  const readmes = readSources(paths.filter((path) => path.endsWith('.md')));
  expect(allOf((file) => findBrokenLinks(file, paths), readmes)).toEqual([]);
  expect(allOf((file) => findLooseAnchors(file, readmes), readmes)).toEqual([]);
});

test('a table of folders has each folder that there is, and no other', () => {
  const readmes = readSources(paths.filter((path) => path.endsWith('README.md')));
  expect(allOf((file) => findFolderFaults(file, paths), readmes)).toEqual([]);
});

test('the repository shows in the README what the golden graph shows', () => {
  const graph = readFileSync(join(root, 'test/dependency-graph.txt'), 'utf8');
  const readme = readSources(['README.md']);
  expect(allOf((file) => findDependencyFaults(file, graph), readme)).toEqual([]);
});

test('the repository has no path in a document that leads nowhere', () => {
  const documents = readSources(paths.filter((path) => path.endsWith('.md')));
  expect(allOf((file) => findMissingPaths(file, paths), documents)).toEqual([]);
});

test('no comment names a file that does not exist', () => {
  const ends = pathEndsOf(paths);
  expect(allOf((file) => findStaleFileNames(file, ends))).toEqual([]);
});

test('the manual lists every section at its beginning', () => {
  expect(allOf(findUnlistedSections, readSources(['controlplane/OPERATING.md']))).toEqual([]);
});

test('each cited section or rule is defined', () => {
  const design = readFileSync(join(root, 'controlplane/DESIGN.md'), 'utf8');
  const texts = readSources(paths.filter((path) => /\.(ts|proto|md)$/.test(path)));
  const cited = (file: SourceFile) => /DESIGN [§R]\d/.test(file.text);
  expect(texts.filter(cited).length).toBeGreaterThan(40);
  expect(allOf((file) => findLooseCitations(file, design), texts.filter(cited))).toEqual([]);
});

test('the repository shows in the README the diagram of the machine that runs', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  expect(diagramIn(readme)).toBe(diagramBlock(stateDiagram()));
});

test('the repository locks packages without install scripts and registry addresses', () => {
  expect(findLockFaults(readFileSync(join(root, 'package-lock.json'), 'utf8'))).toEqual([]);
  expect(readFileSync(join(root, '.npmrc'), 'utf8')).toContain('ignore-scripts=true');
});
