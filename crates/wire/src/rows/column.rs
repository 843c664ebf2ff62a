//! The kinds of columns: how a fact of a record becomes an Arrow array and
//! comes back. The table of columns in the parent module is made of these.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, ListBuilder, PrimitiveBuilder, StringBuilder, StructBuilder,
};
use arrow_array::types::{Float64Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, ListArray, PrimitiveArray, RecordBatch,
    StringArray, StructArray,
};
use arrow_schema::{DataType, Field, Fields};
use measure::{At, Carries, FailureKind, NotSentKind, Outcome, Record, Span, Tokens, Warnings};

use super::RowsError;

/// The name of a list's values in the schema, as the Parquet standard has it.
pub(super) const ELEMENT: &str = "element";

/// One column of the file as its schema has it.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) data_type: DataType,
    pub(super) nullable: bool,
}

/// The rows being read, and how many were read before them.
pub(super) struct Rows<'a> {
    pub(super) first: u64,
    pub(super) records: &'a mut [Record],
}

impl Rows<'_> {
    /// The position in the file of a row of this batch.
    pub(super) fn row(&self, offset: usize) -> u64 {
        self.first + offset as u64
    }
}

/// A fact of a record that takes one column of the file, or two that belong
/// together.
pub(super) trait Column: Sync {
    /// Its columns in the schema.
    fn parts(&self) -> Vec<Part>;

    /// Its arrays, one for each part.
    fn write(&self, records: &[Record]) -> Vec<ArrayRef>;

    /// Sets the fact in each row.
    fn read(&self, batch: &RecordBatch, rows: &mut Rows<'_>) -> Result<(), RowsError>;
}

/// A number in the file and what it stands for in a record.
pub(super) trait Value: Copy {
    type Arrow: ArrowPrimitiveType;
    fn stored(self) -> <Self::Arrow as ArrowPrimitiveType>::Native;
    fn restored(stored: <Self::Arrow as ArrowPrimitiveType>::Native) -> Self;
}

macro_rules! values {
    ($($type:ty as $arrow:ty: $stored:expr, $restored:expr;)*) => {$(
        impl Value for $type {
            type Arrow = $arrow;
            fn stored(self) -> <$arrow as ArrowPrimitiveType>::Native {
                $stored(self)
            }
            fn restored(stored: <$arrow as ArrowPrimitiveType>::Native) -> Self {
                $restored(stored)
            }
        }
    )*};
}

values! {
    u8 as UInt8Type: u8::from, u8::from;
    u16 as UInt16Type: u16::from, u16::from;
    u32 as UInt32Type: u32::from, u32::from;
    u64 as UInt64Type: u64::from, u64::from;
    f64 as Float64Type: f64::from, f64::from;
    Tokens as UInt32Type: Tokens::get, Tokens::new;
    At as Int64Type: At::us, At::from_us;
    Span as Int64Type: Span::us, Span::from_us;
    Carries as UInt16Type: Carries::bits, Carries::from_bits;
}

/// A number that every row has.
pub(super) struct Number<V> {
    pub(super) name: &'static str,
    pub(super) get: fn(&Record) -> V,
    pub(super) set: fn(&mut Record, V),
}

impl<V: Value> Column for Number<V> {
    fn parts(&self) -> Vec<Part> {
        vec![Part { name: self.name, data_type: V::Arrow::DATA_TYPE, nullable: false }]
    }

    fn write(&self, records: &[Record]) -> Vec<ArrayRef> {
        let values = records.iter().map(|record| (self.get)(record).stored());
        vec![Arc::new(PrimitiveArray::<V::Arrow>::from_iter_values(values))]
    }

    fn read(&self, batch: &RecordBatch, rows: &mut Rows<'_>) -> Result<(), RowsError> {
        let array: &PrimitiveArray<V::Arrow> = column(batch, self.name)?;
        complete(array, self.name, rows)?;
        for (record, value) in rows.records.iter_mut().zip(array.values()) {
            (self.set)(record, V::restored(*value));
        }
        Ok(())
    }
}

/// A number that a row may lack.
pub(super) struct Maybe<V> {
    pub(super) name: &'static str,
    pub(super) get: fn(&Record) -> Option<V>,
    pub(super) set: fn(&mut Record, Option<V>),
}

impl<V: Value> Column for Maybe<V> {
    fn parts(&self) -> Vec<Part> {
        vec![Part { name: self.name, data_type: V::Arrow::DATA_TYPE, nullable: true }]
    }

    fn write(&self, records: &[Record]) -> Vec<ArrayRef> {
        let mut builder = PrimitiveBuilder::<V::Arrow>::with_capacity(records.len());
        for record in records {
            builder.append_option((self.get)(record).map(V::stored));
        }
        vec![Arc::new(builder.finish())]
    }

    fn read(&self, batch: &RecordBatch, rows: &mut Rows<'_>) -> Result<(), RowsError> {
        let array: &PrimitiveArray<V::Arrow> = column(batch, self.name)?;
        for (record, value) in rows.records.iter_mut().zip(array.iter()) {
            (self.set)(record, value.map(V::restored));
        }
        Ok(())
    }
}

/// A truth that every row has.
pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) get: fn(&Record) -> bool,
    pub(super) set: fn(&mut Record, bool),
}

impl Column for Flag {
    fn parts(&self) -> Vec<Part> {
        vec![Part { name: self.name, data_type: DataType::Boolean, nullable: false }]
    }

    fn write(&self, records: &[Record]) -> Vec<ArrayRef> {
        let values: Vec<bool> = records.iter().map(self.get).collect();
        vec![Arc::new(BooleanArray::from(values))]
    }

    fn read(&self, batch: &RecordBatch, rows: &mut Rows<'_>) -> Result<(), RowsError> {
        let array: &BooleanArray = column(batch, self.name)?;
        complete(array, self.name, rows)?;
        for (record, value) in rows.records.iter_mut().zip(array.values().iter()) {
            (self.set)(record, value);
        }
        Ok(())
    }
}

/// Text that a row may lack. `set` is false for a name that is in no list of
/// ours.
pub(super) struct Text {
    pub(super) name: &'static str,
    pub(super) get: fn(&Record) -> Option<&str>,
    pub(super) set: fn(&mut Record, Option<&str>) -> bool,
}

impl Column for Text {
    fn parts(&self) -> Vec<Part> {
        vec![Part { name: self.name, data_type: DataType::Utf8, nullable: true }]
    }

    fn write(&self, records: &[Record]) -> Vec<ArrayRef> {
        vec![Arc::new(records.iter().map(self.get).collect::<StringArray>())]
    }

    fn read(&self, batch: &RecordBatch, rows: &mut Rows<'_>) -> Result<(), RowsError> {
        let array: &StringArray = column(batch, self.name)?;
        for (offset, value) in array.iter().enumerate() {
            if !(self.set)(&mut rows.records[offset], value) {
                return Err(unknown(self.name, rows.row(offset), value));
            }
        }
        Ok(())
    }
}

/// The outcome's class and the kind inside it, which only together are one.
pub(super) struct Outcomes {
    pub(super) outcome: &'static str,
    pub(super) kind: &'static str,
}

impl Column for Outcomes {
    fn parts(&self) -> Vec<Part> {
        let part = |name, nullable| Part { name, data_type: DataType::Utf8, nullable };
        vec![part(self.outcome, false), part(self.kind, true)]
    }

    fn write(&self, records: &[Record]) -> Vec<ArrayRef> {
        let outcomes = records.iter().map(|record| Some(record.outcome.name()));
        let kinds = records.iter().map(|record| record.outcome.kind());
        vec![Arc::new(outcomes.collect::<StringArray>()), Arc::new(kinds.collect::<StringArray>())]
    }

    fn read(&self, batch: &RecordBatch, rows: &mut Rows<'_>) -> Result<(), RowsError> {
        let outcomes: &StringArray = column(batch, self.outcome)?;
        let kinds: &StringArray = column(batch, self.kind)?;
        complete(outcomes, self.outcome, rows)?;
        for offset in 0..rows.records.len() {
            let name = outcomes.value(offset);
            let kind = kinds.is_valid(offset).then(|| kinds.value(offset));
            let Some(outcome) = Outcome::from_names(name, kind) else {
                let row = rows.row(offset);
                return Err(match (has_kinds(name), kind) {
                    (false, _) => unknown(self.outcome, row, Some(name)),
                    (true, None) => RowsError::MissingValue { column: self.kind, row },
                    (true, kind) => unknown(self.kind, row, kind),
                });
            };
            rows.records[offset].outcome = outcome;
        }
        Ok(())
    }
}

fn has_kinds(outcome: &str) -> bool {
    [Outcome::Failed(FailureKind::Dns), Outcome::NotSent(NotSentKind::WorkerLost)]
        .iter()
        .any(|one| one.name() == outcome)
}

/// A list of numbers. Nullable where the absence of the list says something.
pub(super) struct List<V> {
    pub(super) name: &'static str,
    pub(super) nullable: bool,
    pub(super) get: fn(&Record) -> Option<&[V]>,
    pub(super) set: fn(&mut Record, Vec<V>),
}

impl<V: Value> Column for List<V> {
    fn parts(&self) -> Vec<Part> {
        let data_type = list_of(V::Arrow::DATA_TYPE);
        vec![Part { name: self.name, data_type, nullable: self.nullable }]
    }

    fn write(&self, records: &[Record]) -> Vec<ArrayRef> {
        let lists = records.iter().map(self.get);
        let total = lists.clone().flatten().map(<[V]>::len).sum();
        let values = PrimitiveBuilder::<V::Arrow>::with_capacity(total);
        let mut builder = list_builder(values, V::Arrow::DATA_TYPE);
        for list in lists {
            for value in list.unwrap_or_default() {
                builder.values().append_value(value.stored());
            }
            builder.append(list.is_some());
        }
        vec![Arc::new(builder.finish())]
    }

    fn read(&self, batch: &RecordBatch, rows: &mut Rows<'_>) -> Result<(), RowsError> {
        let lists: Lists<'_, PrimitiveArray<V::Arrow>> = Lists::of(batch, self.name, rows)?;
        if !self.nullable {
            complete(lists.list, self.name, rows)?;
        }
        for (offset, record) in rows.records.iter_mut().enumerate() {
            if let Some(range) = lists.range(offset) {
                let values = &lists.values.values()[range];
                (self.set)(record, values.iter().map(|&value| V::restored(value)).collect());
            }
        }
        Ok(())
    }
}

/// The value of a name in a list of pairs.
pub(super) trait Named: Sized {
    type Builder: ArrayBuilder + Default;
    type Array: Array + 'static;
    const DATA_TYPE: DataType;
    fn append(&self, builder: &mut Self::Builder);
    fn at(array: &Self::Array, index: usize) -> Self;
}

impl Named for String {
    type Builder = StringBuilder;
    type Array = StringArray;
    const DATA_TYPE: DataType = DataType::Utf8;

    fn append(&self, builder: &mut StringBuilder) {
        builder.append_value(self);
    }

    fn at(array: &StringArray, index: usize) -> Self {
        array.value(index).to_owned()
    }
}

impl Named for f64 {
    type Builder = PrimitiveBuilder<Float64Type>;
    type Array = PrimitiveArray<Float64Type>;
    const DATA_TYPE: DataType = DataType::Float64;

    fn append(&self, builder: &mut Self::Builder) {
        builder.append_value(*self);
    }

    fn at(array: &Self::Array, index: usize) -> Self {
        array.value(index)
    }
}

/// A list of names and values. A list of structs and not a map, because a map
/// may not hold a name twice and a server may send one twice.
pub(super) struct Pairs<V> {
    pub(super) name: &'static str,
    pub(super) get: fn(&Record) -> &Vec<(String, V)>,
    pub(super) set: fn(&mut Record, Vec<(String, V)>),
}

impl<V: Named> Pairs<V> {
    fn fields() -> Fields {
        Fields::from(vec![
            Field::new("name", DataType::Utf8, false),
            Field::new("value", V::DATA_TYPE, false),
        ])
    }
}

impl<V: Named> Column for Pairs<V> {
    fn parts(&self) -> Vec<Part> {
        let data_type = list_of(DataType::Struct(Self::fields()));
        vec![Part { name: self.name, data_type, nullable: false }]
    }

    fn write(&self, records: &[Record]) -> Vec<ArrayRef> {
        let builders: Vec<Box<dyn ArrayBuilder>> =
            vec![Box::new(StringBuilder::new()), Box::new(V::Builder::default())];
        let pairs = StructBuilder::new(Self::fields(), builders);
        let mut builder = list_builder(pairs, DataType::Struct(Self::fields()));
        for record in records {
            for (name, value) in (self.get)(record) {
                let pair = builder.values();
                pair.field_builder::<StringBuilder>(0).expect("names").append_value(name);
                value.append(pair.field_builder(1).expect("values"));
                pair.append(true);
            }
            builder.append(true);
        }
        vec![Arc::new(builder.finish())]
    }

    fn read(&self, batch: &RecordBatch, rows: &mut Rows<'_>) -> Result<(), RowsError> {
        let lists: Lists<'_, StructArray> = Lists::of(batch, self.name, rows)?;
        complete(lists.list, self.name, rows)?;
        let names: &StringArray = member(lists.values, "name", self.name)?;
        let values: &V::Array = member(lists.values, "value", self.name)?;
        for (offset, record) in rows.records.iter_mut().enumerate() {
            if let Some(range) = lists.range(offset) {
                let pair = |index| (names.value(index).to_owned(), V::at(values, index));
                (self.set)(record, range.map(pair).collect());
            }
        }
        Ok(())
    }
}

/// The warnings of an answer by name. A bit that has no name yet is written as
/// its position, because a record holds what it was given.
pub(super) struct WarningNames {
    pub(super) name: &'static str,
}

const UNNAMED: &str = "bit_";

impl Column for WarningNames {
    fn parts(&self) -> Vec<Part> {
        vec![Part { name: self.name, data_type: list_of(DataType::Utf8), nullable: false }]
    }

    fn write(&self, records: &[Record]) -> Vec<ArrayRef> {
        let mut builder = list_builder(StringBuilder::new(), DataType::Utf8);
        for record in records {
            let warnings = record.answer.warnings;
            for name in warnings.names() {
                builder.values().append_value(name);
            }
            for bit in (0..u32::BITS).filter(|bit| name_of(*bit).is_none()) {
                if warnings.has(Warnings::from_bits(1 << bit)) {
                    builder.values().append_value(format!("{UNNAMED}{bit}"));
                }
            }
            builder.append(true);
        }
        vec![Arc::new(builder.finish())]
    }

    fn read(&self, batch: &RecordBatch, rows: &mut Rows<'_>) -> Result<(), RowsError> {
        let lists: Lists<'_, StringArray> = Lists::of(batch, self.name, rows)?;
        complete(lists.list, self.name, rows)?;
        for offset in 0..rows.records.len() {
            let mut warnings = Warnings::NONE;
            for index in lists.range(offset).into_iter().flatten() {
                let name = lists.values.value(index);
                let known = warning(name);
                warnings
                    .add(known.ok_or_else(|| unknown(self.name, rows.row(offset), Some(name)))?);
            }
            rows.records[offset].answer.warnings = warnings;
        }
        Ok(())
    }
}

fn name_of(bit: u32) -> Option<&'static str> {
    let known = Warnings::NAMES.iter().find(|(warning, _)| warning.bits() == 1 << bit);
    known.map(|(_, name)| *name)
}

fn warning(name: &str) -> Option<Warnings> {
    if let Some((known, _)) = Warnings::NAMES.iter().find(|(_, known)| *known == name) {
        return Some(*known);
    }
    let bit = name.strip_prefix(UNNAMED)?.parse().ok()?;
    1_u32.checked_shl(bit).map(Warnings::from_bits)
}

/// A list column and its values, cut to the type that they must have.
struct Lists<'a, A> {
    list: &'a ListArray,
    values: &'a A,
}

impl<'a, A: Array + 'static> Lists<'a, A> {
    fn of(batch: &'a RecordBatch, name: &'static str, rows: &Rows<'_>) -> Result<Self, RowsError> {
        let list: &ListArray = column(batch, name)?;
        let values = list.values();
        let lists = Self { list, values: typed(values, name)? };
        if values.null_count() == 0 {
            return Ok(lists);
        }
        let holed = |offset: &usize| {
            lists.range(*offset).is_some_and(|mut range| range.any(|index| values.is_null(index)))
        };
        match (0..list.len()).find(holed) {
            Some(offset) => Err(RowsError::MissingValue { column: name, row: rows.row(offset) }),
            None => Ok(lists),
        }
    }

    /// Where the values of a row are; `None` when it has no list.
    fn range(&self, offset: usize) -> Option<std::ops::Range<usize>> {
        let ends = self.list.value_offsets();
        self.list.is_valid(offset).then(|| ends[offset] as usize..ends[offset + 1] as usize)
    }
}

fn list_of(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new(ELEMENT, element, false)))
}

fn list_builder<B: ArrayBuilder>(values: B, element: DataType) -> ListBuilder<B> {
    ListBuilder::new(values).with_field(Field::new(ELEMENT, element, false))
}

fn column<'a, A: Array + 'static>(
    batch: &'a RecordBatch,
    name: &'static str,
) -> Result<&'a A, RowsError> {
    typed(batch.column_by_name(name).ok_or(RowsError::MissingColumn { column: name })?, name)
}

fn member<'a, A: Array + 'static>(
    pairs: &'a StructArray,
    field: &str,
    column: &'static str,
) -> Result<&'a A, RowsError> {
    typed(pairs.column_by_name(field).ok_or(RowsError::MissingColumn { column })?, column)
}

fn typed<'a, A: Array + 'static>(
    array: &'a ArrayRef,
    column: &'static str,
) -> Result<&'a A, RowsError> {
    array
        .as_any()
        .downcast_ref()
        .ok_or_else(|| RowsError::WrongType { column, found: array.data_type().to_string() })
}

/// Refuses a column with holes where every row must have a value.
fn complete(array: &dyn Array, column: &'static str, rows: &Rows<'_>) -> Result<(), RowsError> {
    match (0..array.len()).find(|offset| array.is_null(*offset)) {
        Some(offset) => Err(RowsError::MissingValue { column, row: rows.row(offset) }),
        None => Ok(()),
    }
}

fn unknown(column: &'static str, row: u64, value: Option<&str>) -> RowsError {
    RowsError::UnknownName { column, row, value: value.unwrap_or_default().to_owned() }
}
