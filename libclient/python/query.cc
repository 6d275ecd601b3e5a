#include "libclient/python/query.h"

#include <cstdlib>

#include "libclient/python/answer.h"
#include "libclient/python/check.h"
#include "libclient/python/question.h"
#include "libclient/sonde_query.h"

namespace sonde::python {
namespace {

struct Connection;

// Tells a subscription's callback whose values it gets. A watch's is told by libsonde.
struct Subscription {
  Subscription* next;
  Connection* connection;
  uint64_t id;
};

// What one poll() brings.
struct Brought {
  Unlocked* unlocked;
  Ref list;  // of (id, News or Event)
  bool failed = false;
};

struct Connection {
  PyObject_HEAD sonde_query_t* query;  // nullptr if there is nobody to ask, or no more
  int code;                            // of opening it
  Answers answers;
  Subscription* subscriptions;
  Brought* brought;      // while libsonde polls
  int calls;             // of libsonde that go on, each within the one before
  unsigned long thread;  // that they are of
  bool closing;          // once they are over
};

Connection* ConnectionOf(PyObject* self) { return reinterpret_cast<Connection*>(self); }

void FreeSubscriptions(Connection* connection) {
  while (Subscription* const first = connection->subscriptions) {
    connection->subscriptions = first->next;
    free(first);
  }
}

void Forget(Connection* connection, uint64_t id) {
  for (Subscription** at = &connection->subscriptions; *at != nullptr; at = &(*at)->next) {
    if ((*at)->id != id) continue;
    Subscription* const found = *at;
    *at = found->next;
    return free(found);
  }
}

// For the time of a method that calls libsonde.
class Call {
 public:
  explicit Call(PyObject* self) : connection_(ConnectionOf(self)) {
    const unsigned long thread = PyThread_get_thread_ident();
    entered_ = connection_->calls == 0 || connection_->thread == thread;
    if (!entered_) {
      PyErr_SetString(PyExc_RuntimeError, "another thread uses this connection");
      return;
    }
    connection_->thread = thread;
    ++connection_->calls;
  }
  ~Call() {
    if (!entered_ || --connection_->calls > 0 || !connection_->closing) return;
    // Before the lock is given up: nobody else shall find it.
    sonde_query_t* const query = connection_->query;
    connection_->query = nullptr;
    connection_->closing = false;
    FreeSubscriptions(connection_);
    const Unlocked others;
    sonde_query_close(query);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // False, with an exception, if another thread is in a call.
  bool entered() const { return entered_; }
  // nullptr: there is nobody to ask.
  sonde_query_t* query() const { return connection_->closing ? nullptr : connection_->query; }
  const Answers& answers() const { return connection_->answers; }

  const char* error() const { return sonde_query_error(connection_->query); }
  // False, with an exception, if libsonde's code is an error. That nobody was there to ask is none.
  bool Succeeded(int code) const {
    const bool good = code == SONDE_OK || code == SONDE_OFF;
    if (!good) answers().Raise(code, error());
    return good;
  }

 private:
  Connection* const connection_;
  bool entered_;
};

// --- The connection

PyObject* Open(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* const keywords[] = {"timeout", "classes", nullptr};
  PyObject *timeout = nullptr, *classes = nullptr;
  int timeout_ms;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "OO:Connection", const_cast<char**>(keywords),
                                  &timeout, &classes) == 0 ||
      !TakeTimeout(timeout, &timeout_ms)) {
    return nullptr;
  }
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  Ref made(allocate(type, 0));
  if (!made || !ConnectionOf(made.get())->answers.Take(classes)) return nullptr;
  sonde_query_t* query;
  int code = SONDE_OFF;
  {
    const Unlocked others;
    query = sonde_query_open(timeout_ms, &code);
  }
  ConnectionOf(made.get())->query = query;
  ConnectionOf(made.get())->code = code;
  return made.Release();
}

int VisitClasses(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return ConnectionOf(self)->answers.Traverse(visit, arg);
}

// There is no tp_clear: a cycle through the classes is broken in the names of their modules.
void Destroy(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  sonde_query_close(ConnectionOf(self)->query);  // waits for nothing
  FreeSubscriptions(ConnectionOf(self));
  ConnectionOf(self)->answers.Clear();
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* Close(PyObject* self, PyObject* /*unused*/) {
  const Call call(self);
  if (!call.entered()) return nullptr;
  if (call.query() != nullptr) ConnectionOf(self)->closing = true;
  Py_RETURN_NONE;
}

int IsOpen(PyObject* self) {
  return ConnectionOf(self)->query != nullptr && !ConnectionOf(self)->closing ? 1 : 0;
}

PyObject* ErrorOf(PyObject* self, void* /*closure*/) {
  const int code = ConnectionOf(self)->code;
  return TextOf(code == SONDE_OK ? "" : sonde_strerror(code)).Release();
}

PyObject* Fileno(PyObject* self, PyObject* /*unused*/) {
  return PyLong_FromLong(sonde_query_fd(ConnectionOf(self)->query));
}

PyObject* Period(PyObject* self, PyObject* /*unused*/) {
  return PyFloat_FromDouble(sonde_query_period(ConnectionOf(self)->query));
}

// --- Questions

PyObject* Get(PyObject* self, PyObject* args) {
  PyObject* words[Question::kWords];
  PyObject *last, *start, *end, *timeout;
  Question question;
  int timeout_ms;
  if (PyArg_UnpackTuple(args, "get", 12, 12, &words[0], &words[1], &words[2], &words[3], &words[4],
                        &words[5], &words[6], &words[7], &last, &start, &end, &timeout) == 0 ||
      !question.Take(words) || !question.TakeRange(last, start, end) ||
      !TakeTimeout(timeout, &timeout_ms)) {
    return nullptr;
  }
  const Call call(self);
  if (!call.entered()) return nullptr;
  sonde_result_t* result = nullptr;
  int code;
  {
    const Unlocked others;
    code = sonde_query_get(call.query(), question.raw(), timeout_ms, &result);
  }
  if (!call.Succeeded(code)) return nullptr;
  if (code == SONDE_OFF) return PyList_New(0);
  Ref answer = call.answers().AllSeries(*result);
  sonde_result_free(result);
  return answer.Release();
}

PyObject* List(PyObject* self, PyObject* args) {
  PyObject *name, *timeout;
  Text metric;
  int timeout_ms;
  if (PyArg_UnpackTuple(args, "list", 2, 2, &name, &timeout) == 0 ||
      !metric.TakeWhole(name, "the name of a metric") || !TakeTimeout(timeout, &timeout_ms)) {
    return nullptr;
  }
  const Call call(self);
  if (!call.entered()) return nullptr;
  sonde_list_t* list = nullptr;
  int code;
  {
    const Unlocked others;
    code = sonde_query_list(call.query(), metric.c_str(), timeout_ms, &list);
  }
  if (!call.Succeeded(code)) return nullptr;
  if (code == SONDE_OFF) return PyList_New(0);
  Ref answer = call.answers().Metrics(*list);
  sonde_list_free(list);
  return answer.Release();
}

PyObject* Alarm(PyObject* self, PyObject* args) {
  PyObject *given_name, *given_rule, *timeout;
  Text name, rule;
  int timeout_ms;
  if (PyArg_UnpackTuple(args, "alarm", 3, 3, &given_name, &given_rule, &timeout) == 0 ||
      !name.TakeWhole(given_name, "the name of an alarm") ||
      !rule.TakeWhole(given_rule, "the rule of an alarm") || !TakeTimeout(timeout, &timeout_ms)) {
    return nullptr;
  }
  const Call call(self);
  if (!call.entered()) return nullptr;
  int code;
  {
    const Unlocked others;
    code = sonde_query_alarm(call.query(), name.c_str(), rule.c_str(), timeout_ms);
  }
  if (!call.Succeeded(code)) return nullptr;
  Py_RETURN_NONE;
}

// --- What stands

// Runs `make` in the midst of poll(), and keeps what it makes for the callback of that id.
template <typename Make>
void Keep(const Connection* connection, uint64_t id, Make make) {
  Brought* const brought = connection->brought;
  const Locked lock(brought->unlocked);
  if (brought->failed || connection->closing) return;
  const Ref pair = TupleOf(Ref(PyLong_FromUnsignedLongLong(id)), make(connection->answers));
  brought->failed = !pair || PyList_Append(brought->list.get(), pair.get()) != 0;
}

void OnPoints(void* data, const sonde_result_t* news) {
  const auto* const subscription = static_cast<const Subscription*>(data);
  Keep(subscription->connection, subscription->id,
       [news](const Answers& answers) { return answers.News(*news); });
}

void OnEvent(void* data, const sonde_event_t* event) {
  Keep(static_cast<const Connection*>(data), event->id,
       [event](const Answers& answers) { return answers.Event(*event); });
}

// The id of what stands, 0 where there is nobody to ask.
PyObject* Standing(const Call& call, uint64_t id) {
  const bool refused = id == 0 && call.query() != nullptr;
  if (!call.Succeeded(refused ? SONDE_INVALID : SONDE_OK)) return nullptr;
  return PyLong_FromUnsignedLongLong(id);
}

PyObject* Subscribe(PyObject* self, PyObject* args) {
  PyObject* words[Question::kWords];
  Question question;
  if (PyArg_UnpackTuple(args, "subscribe", 8, 8, &words[0], &words[1], &words[2], &words[3],
                        &words[4], &words[5], &words[6], &words[7]) == 0 ||
      !question.Take(words)) {
    return nullptr;
  }
  const Call call(self);
  if (!call.entered()) return nullptr;
  auto* const subscription = static_cast<Subscription*>(malloc(sizeof(Subscription)));
  if (subscription == nullptr) return PyErr_NoMemory();
  uint64_t id;
  {
    const Unlocked others;
    id = sonde_query_subscribe(call.query(), question.raw(), &OnPoints, subscription);
  }
  *subscription = {ConnectionOf(self)->subscriptions, ConnectionOf(self), id};
  ConnectionOf(self)->subscriptions = subscription;
  if (id == 0) Forget(ConnectionOf(self), id);
  return Standing(call, id);
}

PyObject* Watch(PyObject* self, PyObject* args) {
  PyObject *given_condition, *given_end;
  Text condition;
  if (PyArg_UnpackTuple(args, "watch", 2, 2, &given_condition, &given_end) == 0 ||
      !condition.TakeWhole(given_condition, "the condition")) {
    return nullptr;
  }
  const int tell_end = PyObject_IsTrue(given_end);
  if (tell_end < 0) return nullptr;
  const Call call(self);
  if (!call.entered()) return nullptr;
  uint64_t id;
  {
    const Unlocked others;
    id = sonde_query_watch(call.query(), condition.c_str(), tell_end, &OnEvent, ConnectionOf(self));
  }
  return Standing(call, id);
}

PyObject* Cancel(PyObject* self, PyObject* object) {
  if (!PyLong_Check(object)) {
    WrongType("the id", "an int that subscribe() or watch() gave", object);
    return nullptr;
  }
  unsigned long long id = PyLong_AsUnsignedLongLong(object);
  if (PyErr_Occurred() != nullptr) {
    // Too large, or negative: nothing has 0 either.
    PyErr_Clear();
    id = 0;
  }
  const Call call(self);
  if (!call.entered()) return nullptr;
  int code;
  {
    const Unlocked others;
    code = sonde_query_cancel(call.query(), id);
  }
  Forget(ConnectionOf(self), id);
  if (!call.Succeeded(code)) return nullptr;
  Py_RETURN_NONE;
}

// ([(id, News or Event), ...], None or (code, text) of what failed after these)
PyObject* Poll(PyObject* self, PyObject* timeout) {
  int timeout_ms;
  if (!TakeTimeout(timeout, &timeout_ms)) return nullptr;
  const Call call(self);
  if (!call.entered()) return nullptr;
  Brought brought = {nullptr, Ref(PyList_New(0))};
  if (!brought.list) return nullptr;
  // libsonde refuses a poll within another, and calls nothing back.
  Brought* const outer = ConnectionOf(self)->brought;
  if (outer == nullptr) ConnectionOf(self)->brought = &brought;
  int calls;
  {
    Unlocked others;
    brought.unlocked = &others;
    calls = sonde_query_poll(call.query(), timeout_ms);
  }
  ConnectionOf(self)->brought = outer;
  if (brought.failed) return nullptr;
  const bool failed = calls < 0 && calls != -SONDE_OFF;
  const Ref failure =
      failed ? TupleOf(Ref(PyLong_FromLong(-calls)), TextOf(call.error())) : NewRef(Py_None);
  return TupleOf(brought.list, failure).Release();
}

// --- The type

PyMemberDef connection_members[] = {
    {"code", T_INT, offsetof(Connection, code), READONLY, "How opening it went."},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef connection_getters[] = {
    {"error", &ErrorOf, nullptr, "Why there is nobody to ask, or ''.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef connection_methods[] = {
    {"close", &Close, METH_NOARGS, "close($self, /)\n--\n\nEnds everything."},
    {"fileno", &Fileno, METH_NOARGS, "fileno($self, /)\n--\n\nThe descriptor to watch, or -1."},
    {"period", &Period, METH_NOARGS, "period($self, /)\n--\n\nOf the step's ticks, in seconds."},
    {"get", &Get, METH_VARARGS,
     "get($self, metric, aggregator, downsample, rate, tags, filters, by, explicit_tags, "
     "last, start, end, timeout, /)\n--\n\nA list of Series."},
    {"list", &List, METH_VARARGS, "list($self, metric, timeout, /)\n--\n\nA list of Metric."},
    {"alarm", &Alarm, METH_VARARGS,
     "alarm($self, name, rule, timeout, /)\n--\n\nSets an alarm of the step."},
    {"subscribe", &Subscribe, METH_VARARGS,
     "subscribe($self, metric, aggregator, downsample, rate, tags, filters, by, explicit_tags, /)\n"
     "--\n\nThe id of a subscription, 0 without telemetry."},
    {"watch", &Watch, METH_VARARGS,
     "watch($self, condition, tell_end, /)\n--\n\nThe id of a watch, 0 without telemetry."},
    {"cancel", &Cancel, METH_O, "cancel($self, id, /)\n--\n\nEnds a subscription or a watch."},
    {"poll", &Poll, METH_O,
     "poll($self, timeout, /)\n--\n\n"
     "What to call back with, as (id, News or Event), and what failed then, as (code, text)."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool AddConnection(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("Connection(timeout, classes)\n--\n\n"
                                    "To the daemon of this node; use sonde.query.Query.")},
      {Py_tp_new, reinterpret_cast<void*>(&Open)},
      {Py_tp_dealloc, reinterpret_cast<void*>(&Destroy)},
      {Py_tp_traverse, reinterpret_cast<void*>(&VisitClasses)},
      {Py_nb_bool, reinterpret_cast<void*>(&IsOpen)},
      {Py_tp_methods, connection_methods},
      {Py_tp_members, connection_members},
      {Py_tp_getset, connection_getters},
      {0, nullptr}};
  PyType_Spec spec = {"sonde._sonde.Connection", sizeof(Connection), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  Ref type(PyType_FromSpec(&spec));
  // Takes the reference when it succeeds.
  if (!type || PyModule_AddObject(module, "Connection", type.get()) != 0) return false;
  type.Release();
  return true;
}

}  // namespace sonde::python
