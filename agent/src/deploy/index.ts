/**
 * How hosts prove that they run the image that was deployed to them, and where they find their
 * first boot.
 */
export { netbootArguments } from './netboot-arguments.ts';
export { NetbootImages, type NetbootImagesParts } from './netboot-images.ts';
export { type DeployPagesParts, isNoCloud, makeDeployPages } from './pages.ts';
export { type PhoneHomeAnswer, Proofs, type ProofsParts } from './proofs.ts';
export { loadDeployKey } from './token.ts';
