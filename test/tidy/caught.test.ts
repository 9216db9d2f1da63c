import { expect, test } from 'vitest';
import { findDroppedCauses } from './caught.ts';

const path = 'agent/src/session/link.ts';

test('the check finds a line that drops what was caught, in a block and in a callback', () => {
  const bad = [
    "try { a(); } catch (error) { log.warn({ reason: String(error) }, 'it failed'); }",
    "try { a(); } catch { this.#log.error({}, 'it failed'); }",
    "try { a(); } catch (cause) { if (b) { parts.log.warn({}, 'it failed', other); } }",
    "a().catch(() => log.warn({}, 'it failed'));",
    "a().catch((error: unknown) => log.warn({ reason: textOf(error) }, 'it failed'));",
    "a().catch(async (error: unknown) => { ownLog.info({}, 'it failed'); });",
  ];
  for (const text of bad) {
    expect(findDroppedCauses({ path, text: `a;\n${text}` }), text).toMatchObject([{ line: 2 }]);
  }
});

test('the check takes a line that carries what was caught, and lines beside the handler', () => {
  const good = [
    "try { a(); } catch (error) { log.warn({ host }, 'it failed', error); } log.info({}, 'b');",
    "try { a(); } catch (error) { log.warn(\n  { host },\n  'it failed',\n  error,\n); }",
    "a().catch((error: unknown) => log.warn({}, 'it failed', error)); log.info({}, 'b');",
    'a().catch(() => undefined); log.info({}, text);',
    'try { a(); } catch (error) { throw new Other(error); }',
  ];
  for (const text of good) expect(findDroppedCauses({ path, text }), text).toEqual([]);
});
