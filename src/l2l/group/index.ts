/** Devices of other processes and machines that share the minibatches of a peer. Loads no TensorFlow.js. */
export { awaitToken } from './admission.js'
export { BlockHosts } from './block-hosts.js'
export { type DeviceEvents, serveDevice } from './device-worker.js'
export type { DeviceLine } from './messages.js'
export { RemoteDevice } from './remote-device.js'
