import { DeviceError } from '#device'

/** A worker's device failed. The step is lost, and the pool has removed the worker. */
export class WorkerFailedError extends DeviceError {}
