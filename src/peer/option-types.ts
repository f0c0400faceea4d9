/** Types of the options of peers, and which values they have. */
import {
  type Active,
  boundsOf,
  checkFeatures,
  checkOptions,
  OptionError,
  type OptionTypes,
  Privacy,
  optionTypes as types
} from '../learning/index.js'
import { growingNames } from '../task/learning-spec.js'
import { executionType, specType, streamType, trustType } from '../task/options.js'
import { NAME_PATTERN } from '../view/index.js'
import type { PeerOptions } from './options.js'

const { bytes, choice, flag, number, object, text, texts } = types

/** Of `PeerOptions`. */
export const peerTypes: OptionTypes<PeerOptions> = {
  spec: specType,
  execution: executionType,
  stream: streamType,
  rate: number,
  labelDelay: number,
  period: types.either(number, choice('auto')),
  carry: number,
  predictWith: text,
  drift: choice('adwin', 'off'),
  dp: object('{ epsilon: 1, delta: 1e-6, clip: 1 }'),
  dir: text,
  keepJournal: flag,
  store: choice('memory', 'disk'),
  listen: texts,
  peers: texts,
  degree: number,
  mdns: flag,
  relay: flag,
  upgrades: object('new WebSocketUpgrades()'),
  stun: texts,
  networkKey: bytes,
  networkId: text,
  allow: types.set,
  acceptInvitations: flag,
  invitation: text,
  trust: trustType,
  identity: object('an Ed25519 key pair'),
  name: text,
  plugins: texts,
  log: types.callback
}

export const peerType = types.options<PeerOptions>(peerTypes, ['spec', 'log'])

const STUN_URL = /^stuns?:[\w.-]+(:\d{1,5})?$/

/** @throws OptionError for an option that is unknown or of another type, or has an invalid value */
export function checkPeerOptions(options: PeerOptions): void {
  checkOptions('the options of the peer', peerType, options)
  const { name, stun } = options
  // Other peers would refuse every status with this name.
  if (name !== undefined && !NAME_PATTERN.test(name)) {
    throw new OptionError('the name must have 1 to 40 printable characters')
  }
  const noStun = stun?.find(url => !STUN_URL.test(url))
  if (noStun !== undefined)
    throw new OptionError(`stun: ${noStun} is not an address such as stun:stun.example.org:3478`)
  if (options.dp !== undefined) new Privacy(options.dp)
  checkFeatures(featuresOf(options))
}

function featuresOf({ spec, dp, dir, predictWith, allow, trust, store, ...options }: PeerOptions): Active {
  return {
    peers: true,
    network: spec.network !== undefined,
    stateDirectory: dir !== undefined,
    allowList: allow !== undefined,
    localSteps: spec.localSteps !== undefined,
    newClasses: growingNames(spec) !== undefined,
    aheadPredictions: predictWith === 'ahead',
    measuredScale: spec.features.scale === 'standard',
    privacy: dp !== undefined,
    signers: (boundsOf(trust)?.signers ?? 0) > 0,
    invited: options.acceptInvitations ?? false,
    wholeJournal: options.keepJournal ?? false,
    arraysOnDisk: store === 'disk'
  }
}
