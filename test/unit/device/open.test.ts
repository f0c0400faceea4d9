/** Opening devices: the reported reasons. */
import assert from 'node:assert/strict'
import { DEVICE_NAMES, DeviceError, openDevice, openedDevice } from '../../../src/device/index.js'

describe('opening a device', () => {
  after(() => openDevice('wasm'))

  it('auto opens the first that works, and reports in one line why others do not', async () => {
    const device = await openDevice('auto')
    assert.equal(openedDevice(), device)
    assert.match(device.reason, new RegExp(`^${device.name} works, [^\n]+$`))
    for (const name of DEVICE_NAMES.slice(0, DEVICE_NAMES.indexOf(device.name))) {
      assert.match(device.reason, new RegExp(`; ${name}: `))
      // An explicit webgpu accepts a software driver.
      if (/software driver/.test(device.reason) && name === 'webgpu') continue
      await assert.rejects(openDevice(name), DeviceError)
    }
  })

  it('a missing BLAS is an error only if it was requested explicitly', async () => {
    await assert.rejects(openDevice('wasm', { blas: 'libnothing.so.7' }), /cannot use BLAS libnothing\.so\.7/)
    const { detail, hasFastProducts } = await openDevice('wasm', { blas: 'none' })
    assert.equal(detail, 'without a BLAS')
    assert.equal(hasFastProducts, false)
  })
})
