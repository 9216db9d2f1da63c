/** The console's entry: hands the browser to the rest. */
import { render } from 'preact';
import { App } from './app.tsx';
import { openClients } from './browser/client.ts';
import { pageClock } from './browser/clock.ts';

const root = document.getElementById('app');
if (root !== null) {
  root.replaceChildren();
  render(<App clients={openClients(location.origin)} clock={pageClock} />, root);
}
