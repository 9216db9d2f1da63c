/** How hosts prove that they run what was put onto them, and where they find their first boot. */
export { type PhoneHomeAnswer, Proofs, type ProofsParts } from './proofs.ts';
export { loadDeployKey } from './token.ts';
