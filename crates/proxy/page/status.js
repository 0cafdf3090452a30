"use strict";
// The page asks for the status twice a second, and keeps the last two minutes of it for the chart.

const EVERY = 500, KEPT = 240, SHOWN_MIN = 60;
const LIMITS = {
  idle: "idle", path: "limited by the path", program: "limited by the program here", disk: "limited by the disk",
  processor: "limited by the processor of the program here",
  far_tcp: "limited by the server or the way to it", path_or_far_tcp: "limited by the path or the server",
};
const $ = id => document.getElementById(id);
const points = [];

function scaled(value, units, base = 1000) {
  let at = 0;
  while (value >= base && at < units.length - 1) { value /= base; at += 1; }
  const digits = at === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[at]}`;
}
const size = bytes => scaled(bytes, ["B", "kB", "MB", "GB", "TB"]);
const rate = bits => scaled(bits, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]);
function time(seconds) {
  if (seconds < 1) return `${Math.round(1000 * seconds)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** What waits in the buffers of all connections. */
function sums(status) {
  let socket = 0, dirty = 0;
  for (const flow of status.flows) {
    if (flow.socket) socket += flow.socket.unread_bytes + flow.socket.unacknowledged_bytes;
    if (flow.file) dirty += flow.file.dirty_bytes + flow.file.writeback_bytes;
  }
  const transport = status.transport ? status.transport.unread_bytes : null;
  return { rate: status.received_bits_per_second + status.sent_bits_per_second, socket, transport, dirty };
}

function fill(bar, part, text) {
  bar.querySelector("b").style.width = `${Math.min(100, Math.max(0, 100 * part)).toFixed(1)}%`;
  bar.querySelector("em").textContent = text;
}

/** One list item for each flow; items stay, so that what the user marks or reads does not jump. */
function showFlow(item, flow, status) {
  item.querySelector(".target").textContent = flow.target;
  item.querySelector(".limit").textContent = LIMITS[flow.limited_by] ?? flow.limited_by;
  const parts = [`${size(flow.received_bytes)} at ${rate(flow.received_bits_per_second)}`];
  if (flow.sent_bytes > 1e6) parts.push(`sent ${size(flow.sent_bytes)} at ${rate(flow.sent_bits_per_second)}`);
  parts.push(time(flow.seconds));
  if (flow.file) parts.push(flow.file.name);
  item.querySelector(".sums").textContent = parts.join(" \u00b7 ");
  const [socket, transport, dirty] = item.querySelectorAll(".bar");
  const s = flow.socket;
  socket.hidden = !s;
  if (s) {
    const waits = s.unread_bytes + s.unacknowledged_bytes;
    const part = s.limit_bytes ? s.used_bytes / s.limit_bytes : 0;
    fill(socket, part, s.limit_bytes ? `${size(waits)} (${Math.round(100 * part)} % full)` : size(waits));
  }
  const t = status.transport;
  transport.hidden = !t;
  if (t) fill(transport, t.unread_bytes / Math.max(1, t.window_bytes), `${size(t.unread_bytes)} of ${size(t.window_bytes)}, of all connections`);
  const f = flow.file;
  dirty.hidden = !f;
  if (f) {
    const waits = f.dirty_bytes + f.writeback_bytes;
    fill(dirty, waits / Math.max(1, f.size_bytes), `${size(waits)} of ${size(f.size_bytes)} unwritten`);
  }
}

function showFlows(status) {
  const list = $("flows");
  const isBusy = flow => flow.limited_by !== "idle" || flow.received_bytes > 1e6 || flow.sent_bytes > 1e6;
  const busy = status.flows.filter(isBusy).sort((one, two) => one.id - two.id);
  const items = new Map([...list.children].map(item => [item.dataset.id, item]));
  for (const flow of busy) {
    const id = String(flow.id);
    let item = items.get(id);
    if (!item) {
      item = $("flow").content.firstElementChild.cloneNode(true);
      item.dataset.id = id;
      list.append(item);
    }
    items.delete(id);
    showFlow(item, flow, status);
  }
  for (const item of items.values()) item.remove();
  $("none").hidden = busy.length > 0;
  const idle = status.open - busy.length;
  $("idle").hidden = busy.length === 0 || idle <= 0;
  $("idle").textContent = idle === 1 ? "One more connection is open and idle." : `${idle} more connections are open and idle.`;
}

function showEnded(status) {
  const shown = status.ended.filter(flow => flow.received_bytes + flow.sent_bytes > 0 || flow.end !== "ended").slice(0, 12);
  $("past").hidden = shown.length === 0;
  $("ended").replaceChildren(...shown.map(flow => {
    const item = document.createElement("li"), target = document.createElement("span"), text = document.createElement("p");
    target.className = "target";
    target.textContent = flow.target;
    text.className = "sums";
    const mean = flow.seconds > 0 ? 8 * flow.received_bytes / flow.seconds : 0;
    text.textContent = `${size(flow.received_bytes)} in ${time(flow.seconds)} (${rate(mean)}) \u00b7 ${flow.end}`;
    item.append(target, text);
    return item;
  }));
}

function line(context, values, color, x, y) {
  context.strokeStyle = color;
  context.lineWidth = 2;
  context.lineJoin = "round";
  context.beginPath();
  let isDown = false;
  values.forEach((value, at) => {
    if (value === null) { isDown = false; return; }
    if (isDown) context.lineTo(x(at), y(value)); else context.moveTo(x(at), y(value));
    isDown = true;
  });
  context.stroke();
}

/** The rate against the axis at the left, and the buffers against the one at the right. */
function draw() {
  const canvas = $("chart"), scale = devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
  const color = name => style.getPropertyValue(`--${name}`).trim();
  context.scale(scale, scale);
  context.font = "12px system-ui, sans-serif";
  const top = 18, bottom = height - 4;
  const most = (values, least) => {
    const max = Math.max(least, ...values.filter(value => value !== null));
    const step = 10 ** Math.floor(Math.log10(max));
    return Math.ceil(max / step) * step;
  };
  const rates = points.map(point => point.rate);
  const buffers = ["socket", "transport", "dirty"];
  const rateMost = most(rates, 1e6), bytesMost = most(points.flatMap(point => buffers.map(name => point[name])), 1e6);
  const span = Math.max(SHOWN_MIN, points.length);
  const x = at => width - (points.length - 1 - at) * width / (span - 1);
  const y = (value, max) => bottom - (bottom - top) * value / max;
  context.strokeStyle = color("edge");
  context.lineWidth = 1;
  for (const part of [0, 0.5, 1]) {
    const at = Math.round(y(part, 1)) + 0.5;
    context.beginPath();
    context.moveTo(0, at);
    context.lineTo(width, at);
    context.stroke();
  }
  for (const name of buffers) line(context, points.map(point => point[name]), color(name), x, value => y(value, bytesMost));
  line(context, rates, color("rate"), x, value => y(value, rateMost));
  context.fillStyle = color("rate");
  context.fillText(rate(rateMost), 0, 12);
  context.fillStyle = color("soft");
  context.textAlign = "center";
  context.fillText(`last ${Math.round(span * EVERY / 1000)} s`, width / 2, 12);
  context.textAlign = "right";
  context.fillText(`buffers: ${size(bytesMost)}`, width, 12);
}

function show(status) {
  const sum = sums(status);
  points.push(sum);
  if (points.length > KEPT) points.shift();
  const carrier = status.carrier === "udp" ? "over UDP" : status.carrier ? "without UDP, which is slower" : "";
  $("gateway").textContent = `Far gateway: ${status.far}${carrier && `, ${carrier}`}`;
  $("gateway").classList.remove("lost");
  $("down").textContent = rate(status.received_bits_per_second);
  $("up").textContent = rate(status.sent_bits_per_second);
  $("rtt").textContent = `${(1000 * status.round_trip_seconds).toFixed(1)} ms`;
  $("open").textContent = String(status.open);
  $("k-rate").textContent = rate(sum.rate);
  for (const name of ["socket", "transport", "dirty"]) {
    $(`k-${name}`).textContent = sum[name] === null ? "not known" : size(sum[name]);
  }
  document.title = sum.rate >= 1e5 ? `${rate(sum.rate)} \u2013 hikyaku` : "hikyaku downloads";
  showFlows(status);
  showEnded(status);
  draw();
}

async function ask() {
  try {
    const answer = await fetch("status", { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    show(await answer.json());
  } catch {
    $("gateway").textContent = "The gateway does not answer. Downloads through it have ended; new ones of a browser with the proxy configuration go direct.";
    $("gateway").classList.add("lost");
  }
  setTimeout(ask, EVERY);
}

addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
ask();
